# The bot as one static binary: no shell, no package manager, not root.
#
#   docker build -t mimikit .
#   docker run -p 8080:8080 -e MIMIKIT_REDIS_MODE=single -e MIMIKIT_REDIS_ADDRS=redis:6379 mimikit
#
# The target "shell" is for tasks that run commands: it has bubblewrap, a shell and
# the usual tools. A sandbox makes namespaces and mounts a /proc of its own, which
# Docker's defaults forbid in three ways; 'mimikit doctor' says when one is left.
#
#   docker build --target shell -t mimikit:shell .
#   docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
#     --security-opt systempaths=unconfined ... mimikit:shell
#
# There is no redis-server in the image. Without MIMIKIT_REDIS_MODE the bot keeps
# its state in memory, says so, and forgets it when the container ends.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/mimikit ./cmd/mimikit \
    && mkdir /out/data

FROM debian:12-slim AS shell
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap ca-certificates tzdata git python3 jq ripgrep \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 65532 --home-dir /var/lib/mimikit mimikit
COPY --from=build /out/mimikit /usr/local/bin/mimikit
COPY --from=build --chown=65532:65532 /out/data /var/lib/mimikit
COPY LICENSE /usr/share/doc/mimikit/LICENSE
ENV MIMIKIT_DATA_DIR=/var/lib/mimikit \
    MIMIKIT_HTTP_LISTEN=:8080
VOLUME /var/lib/mimikit
EXPOSE 8080
USER 65532:65532
HEALTHCHECK CMD ["/usr/local/bin/mimikit", "ready"]
ENTRYPOINT ["/usr/local/bin/mimikit"]
CMD ["serve"]

# CA certificates and time zones come with this base.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/mimikit /usr/local/bin/mimikit
COPY --from=build --chown=65532:65532 /out/data /var/lib/mimikit
COPY LICENSE /usr/share/doc/mimikit/LICENSE
# Within a container only the container can reach 127.0.0.1, so listen on all.
ENV MIMIKIT_DATA_DIR=/var/lib/mimikit \
    MIMIKIT_HTTP_LISTEN=:8080
VOLUME /var/lib/mimikit
EXPOSE 8080
USER 65532:65532
HEALTHCHECK CMD ["/usr/local/bin/mimikit", "ready"]
# SIGTERM stops the bot cleanly; give it the stop grace (30 s) and a little more.
ENTRYPOINT ["/usr/local/bin/mimikit"]
CMD ["serve"]
