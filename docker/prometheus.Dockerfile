# Prometheus, Debian's package, without a shell.
#   docker build -f docker/prometheus.Dockerfile -t blindfold/prometheus docker
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS package
COPY gather /
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends prometheus \
    && /gather /image /usr/bin/prometheus /usr/bin/promtool && mkdir -p /data/data \
    && mkdir -p /image/usr/share && cp -rL /usr/share/prometheus /image/usr/share/ \
    && find /image -name "20*.json" -path "*moment-timezone*" -delete

FROM scratch
COPY --from=package /image/ /
COPY --from=package --chown=10003:10003 /data/ /
LABEL org.opencontainers.image.title="Blindfold: Prometheus"
USER 10003:10003
WORKDIR /data
EXPOSE 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/promtool", "query", "instant", "http://127.0.0.1:9090", "vector(1)"]
ENTRYPOINT ["/prometheus"]
CMD ["--config.file", "/etc/prometheus/prometheus.yml", "--storage.tsdb.path", "/data", "--storage.tsdb.retention.time", "30d"]
