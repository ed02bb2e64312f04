# Redis, Debian's package, without a shell: what gateways, and hint publishers, share. Nothing of it is on a disk.
#   docker build -f docker/redis.Dockerfile -t blindfold/redis docker
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS package
COPY gather /
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server \
    && /gather /image /usr/bin/redis-server /usr/bin/redis-cli

FROM scratch
COPY --from=package /image/ /
LABEL org.opencontainers.image.title="Blindfold: Redis"
USER 10004:10004
EXPOSE 6379
STOPSIGNAL SIGTERM
# A user without a password, who may do nothing else. With -e what is refused is an error, too.
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/redis-cli", "-e", "--no-auth-warning", "--user", "health", "--pass", "none", "ping"]
ENTRYPOINT ["/redis-server"]
# Users, their passwords and what they may do are in the ACL file. When memory is full, what was not asked for longest goes: it
# can be done without.
CMD ["--aclfile", "/run/secrets/redis.acl", "--save", "", "--appendonly", "no", "--maxmemory", "192mb", "--maxmemory-policy", "allkeys-lru"]
