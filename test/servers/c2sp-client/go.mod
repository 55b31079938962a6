module c2sp-client

go 1.26

require (
	github.com/transparency-dev/formats v0.0.0-20250421220931-bb8ad4d07c26
	github.com/transparency-dev/merkle v0.0.2
	github.com/transparency-dev/tessera v1.0.0
	golang.org/x/mod v0.28.0
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	go.opentelemetry.io/auto/sdk v1.1.0 // indirect
	go.opentelemetry.io/otel v1.38.0 // indirect
	go.opentelemetry.io/otel/metric v1.38.0 // indirect
	go.opentelemetry.io/otel/trace v1.38.0 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)
