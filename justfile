# All commands of this repository. `just` lists them; each can also be run directly.
# `ci/install` puts `just` into target/python/bin; your system may have a package of it.

[private]
default:
    @{{just_executable()}} --justfile {{justfile()}} --list --unsorted

# The inner loop: what most changes break, within minutes. Further modules of `it` can be named
check *modules:
    ci/check {{modules}}

# Everything that must pass; `.ci/run` calls it
test:
    ci/test

# What takes longer; once before a release or a large change is closed
long:
    ci/long

# What the tests need beyond Rust, a C compiler, Python and Node.js
install:
    ci/install

# The sample catalog, served. Quick to build, slow to run
demo *args:
    cargo run -- demo {{args}}

# Modules of the integration tests, such as `just it walks::`
it *filters:
    cargo test --test it -- {{filters}}

# The store contract, with a temporary PostgreSQL and Redis
store:
    ci/with-services cargo test -p vitrine-store

# Modules of the integration tests on PostgreSQL
it-postgres *filters:
    VITRINE_TEST_STORE=postgres ci/with-services cargo test --test it -- {{filters}}

# Any command with a temporary PostgreSQL and Redis
with-services +command:
    ci/with-services {{command}}

# Any command with a running demo
with-demo +command:
    ci/with-demo {{command}}

# Copies of a changing catalog through nginx and HAProxy
proxies minutes="2":
    ci/proxies {{minutes}}

# Any command beside a server whose catalog changes every second
with-changes +command:
    ci/with-changes {{command}}

# Random operations against a naive model of the contract
checker:
    cargo test --test checker

# Three servers on a PostgreSQL that is killed, stopped and disconnected
fleet:
    cargo test --test fleet

# Attacks on a server, and their effect on other clients
attacks:
    cargo test --test attacks

# Kills and failing disks at each step that writes
faults:
    cargo test --features fail-points --test faults

# The fuzz corpora and seeded inputs, replayed
replay:
    cargo test -p vitrine-fuzz

# Random search by fuzz targets: seconds, then targets
fuzz *args:
    ci/fuzz {{args}}

# Mutations of the code that no test detects: part, shard
mutants *args:
    ci/mutants {{args}}

# Pages for people in Chromium; pictures go to target/screenshots
browser *files:
    ci/browser {{files}}

# The program against its own OpenAPI document: examples an operation
schemathesis *examples:
    ci/schemathesis {{examples}}

# The OpenAPI document in linters, a mock server and generated clients
clients:
    ci/clients

# Clients by openapi-generator, compiled and used: languages
generated-clients *languages:
    ci/generated-clients {{languages}}

# Programs of the documentation in all seven languages
recipes:
    ci/recipes

# Alert rules, dashboard, units, Dockerfile and manifests against their schemas and tests
deployment:
    ci/deployment

# nginx with the files of deploy/nginx before the demo
nginx:
    ci/nginx

# Breaking changes of the client crate since a commit
semver *commit:
    ci/semver {{commit}}

# Build with the oldest supported Rust
oldest-rust:
    ci/oldest-rust

# The program as it ships: target/release/vitrine
release:
    ci/release

# Two release builds, compared byte for byte
reproducible:
    ci/reproducible

# The Debian package: built, checked, installed on a copy of the system
package *args:
    ci/package {{args}}

# Software bill of materials, as CycloneDX
sbom:
    ci/sbom

# Benchmark of serving, compared with other servers (bench/README.md)
bench *args:
    ci/bench {{args}}

# Cost of the changes feed: waiting clients, copies, the journal (docs/performance.md)
bench-changes *args:
    ci/bench-changes {{args}}

# Keys with assortments under the program before them, on one database
previous-release *args:
    ci/previous-release {{args}}

# Deliveries to webhook endpoints: rate, latency, and their cost for clients (docs/performance.md)
bench-webhooks *args:
    ci/bench-webhooks {{args}}

# Cost of requests of keys that have assortments
bench-assortments *args:
    ci/bench-assortments {{args}}

# Regression of serving since another commit, by default the parent
bench-regression *args:
    ci/bench-regression {{args}}

# Benchmark of loading (docs/performance.md)
bench-load *args:
    ci/bench-load {{args}}

# Benchmark of the catalog browser
bench-browser *args:
    ci/bench-browser {{args}}

# Benchmark of starting and following on PostgreSQL
bench-postgres *args:
    ci/bench-postgres {{args}}

# Micro-benchmarks of the steps of a request
micro-bench:
    cargo bench -p vitrine -p vitrine-ingest -p vitrine-model

# Instructions of a request by function; needs valgrind
budget *args:
    ci/budget {{args}}
