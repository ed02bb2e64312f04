# The Blackbox exporter, Debian's package, without a shell: by it Prometheus asks /readyz.
#   docker build -f docker/blackbox-exporter.Dockerfile -t blindfold/blackbox-exporter docker
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS package
COPY gather /
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends prometheus-blackbox-exporter \
    && /gather /image /usr/bin/prometheus-blackbox-exporter && mkdir -p /data/data

FROM scratch
COPY --from=package /image/ /
COPY --from=package --chown=10003:10003 /data/ /
LABEL org.opencontainers.image.title="Blindfold: Blackbox exporter"
USER 10003:10003
WORKDIR /data
EXPOSE 9115
STOPSIGNAL SIGTERM
# No health check: `up` of the job that goes through it says whether it answers.
ENTRYPOINT ["/prometheus-blackbox-exporter"]
CMD ["--config.file", "/etc/blackbox/blackbox.yml"]
