# What binaries.Dockerfile gives, from programs that are compiled already, on a system with the base's libraries or older ones.
# The context is a folder with `gather` and with programs/{blindfold,blindfold-node,anvil,cast}; `scripts/containers build
# --prebuilt` makes it.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY gather /
COPY programs /programs
RUN /gather /image/blindfold /programs/blindfold && /gather /image/execution /programs/blindfold-node \
    && /gather /image/l1 /programs/anvil /programs/cast \
    && for image in blindfold l1; do install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "/image/$image/etc/ssl/certs/ca-certificates.crt"; done \
    && mkdir -p /image/data/data && rm -rf /programs
