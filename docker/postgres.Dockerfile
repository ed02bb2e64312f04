# PostgreSQL as a pair: one takes writes, the other has each before it is acknowledged. Debian's package; postgres/entrypoint
# says how they find each other.
#   docker build -f docker/postgres.Dockerfile -t blindfold/postgres docker
ARG BASE=debian:bookworm-slim
FROM ${BASE}
# The user first, so that its number does not depend on what else is installed. Clusters are made by the entrypoint.
RUN groupadd --gid 10002 postgres && useradd --uid 10002 --gid postgres --home-dir /data --no-create-home --shell /usr/sbin/nologin postgres \
    && apt-get update && mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15 \
    && rm -rf /var/lib/apt/lists/* && mkdir /data && chown postgres:postgres /data
COPY postgres/entrypoint postgres/postgresql.conf postgres/pg_hba.conf /etc/blindfold/
LABEL org.opencontainers.image.title="Blindfold: PostgreSQL, one of a pair"
USER 10002:10002
WORKDIR /data
EXPOSE 5432
# Fast: sessions end, what is committed stays.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=5s --timeout=5s --start-period=120s --retries=3 \
    CMD ["/usr/lib/postgresql/15/bin/pg_isready", "--quiet", "--host", "/run/postgresql"]
ENTRYPOINT ["/etc/blindfold/entrypoint"]
