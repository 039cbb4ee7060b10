# syntax=docker/dockerfile:1

# The program, built where a compiler is, and put where there is nothing else: no shell, no package manager.
# Both images are Debian 12, so that the C library is the same. Pin them by digest where builds must repeat.
#
#   docker build --tag vitrine .
#   docker run --read-only --publish 8080:8080 --volume vitrine:/var/lib/vitrine vitrine

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked --package vitrine --bin vitrine \
    && install -D --strip target/release/vitrine /image/usr/bin/vitrine \
    && install -D --mode=0644 deploy/docker/vitrine.toml /image/etc/vitrine/vitrine.toml \
    && install -D --mode=0644 --target-directory=/image/usr/share/doc/vitrine LICENSE-MIT LICENSE-APACHE \
    && install --directory --mode=0750 /state/vitrine

# The C library, certificates of the public authorities, and a user 65532.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="Vitrine" \
      org.opencontainers.image.description="The catalog server for payouts" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /image /
COPY --from=build --chown=65532:65532 /state /var/lib
# By number: Kubernetes' `runAsNonRoot` can't tell who a name is.
USER 65532:65532
# For `serve`, and for commands on its store: `docker exec … /usr/bin/vitrine keys list`.
ENV VITRINE_CONFIG=/etc/vitrine/vitrine.toml
# The store and the last good catalog lie here.
WORKDIR /var/lib/vitrine
VOLUME /var/lib/vitrine
# Clients; metrics and probes, which answer inside of the container alone unless settings say otherwise.
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
# Whether it lives, not whether it is ready: whoever restarts what is unhealthy shouldn't restart what waits for a load.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["/usr/bin/vitrine", "ready", "--live"]
ENTRYPOINT ["/usr/bin/vitrine"]
# Without a store yet it serves an empty one, and isn't ready until the first load.
CMD ["serve", "--create"]
