import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One node of OpenSearch: TestNode HOME PORT. It ends with its standard input. */
public class TestNode {
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[1]);
        OpenSearchRunner runner = new OpenSearchRunner() {{ maxHttpPort = 65000; }};
        runner.onBuild((number, settings) -> {
            settings.put("http.port", port);
            settings.put("transport.port", port + 1);
            settings.put("network.host", "127.0.0.1");
            settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
        }).build(OpenSearchRunner.newConfigs().basePath(args[0]).numOfNode(1).baseHttpPort(port - 1).clusterName("test").useLogger().printOnFailure());
        System.out.println("NODE-STARTED");
        while (System.in.read() >= 0) { }
        Runtime.getRuntime().halt(0);
    }
}
