# Builds with docker, podman and buildah (`--format docker` keeps the health check). docs/install.md shows how to run the image.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No dependency of the program needs an install script.
RUN npm ci --ignore-scripts
COPY rolldown.config.js ./
COPY src src
COPY deploy/sbom.js deploy/image/prune.js deploy/
RUN npm run build \
  && npm prune --omit=dev --ignore-scripts && node deploy/prune.js node_modules \
  && rm -rf node_modules/.bin node_modules/.package-lock.json

FROM ${NODE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="waybill" \
  org.opencontainers.image.description="Ships the audit trail of a data protection service, and proves that nothing is missing" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production WAYBILL_REVISION="${REVISION}"
# An arbitrary user of group 0 (OpenShift) may write the state directory too.
RUN ln -s /app/bin/waybill.js /usr/local/bin/waybill \
  && install -d -o 10001 -g 0 -m 0770 /var/lib/waybill && mkdir /etc/waybill
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
COPY package.json LICENSE NOTICE README.md CHANGELOG.md /app/
COPY bin /app/bin
COPY config /app/config
COPY content /app/content
COPY docs /app/docs
# Configuration: /etc/waybill/waybill.yaml. State: ./state, hence /var/lib/waybill/state.
WORKDIR /var/lib/waybill
USER 10001:10001
EXPOSE 9464
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(process.env.WAYBILL_HEALTH_URL ?? 'http://127.0.0.1:9464/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["waybill"]
CMD ["run"]
