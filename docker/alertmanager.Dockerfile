# Alertmanager, Debian's package, without a shell.
#   docker build -f docker/alertmanager.Dockerfile -t blindfold/alertmanager docker
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS package
COPY gather /
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends prometheus-alertmanager \
    && /gather /image /usr/bin/prometheus-alertmanager /usr/bin/amtool && mkdir -p /data/data \
    && mkdir -p /image/usr/share && cp -rL /usr/share/prometheus /image/usr/share/

FROM scratch
COPY --from=package /image/ /
COPY --from=package --chown=10003:10003 /data/ /
LABEL org.opencontainers.image.title="Blindfold: Alertmanager"
USER 10003:10003
WORKDIR /data
EXPOSE 9093
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/amtool", "--alertmanager.url", "http://127.0.0.1:9093", "cluster", "show"]
ENTRYPOINT ["/prometheus-alertmanager"]
# One alone: it has no peers to talk to.
CMD ["--config.file", "/etc/alertmanager/alertmanager.yml", "--storage.path", "/data", "--cluster.listen-address", ""]
