# Every command of this repository. `just` lists them; each can be run as it stands here, too.
# `ci/install` puts `just` into target/python/bin; your system may have a package of it.

[private]
default:
    @{{just_executable()}} --justfile {{justfile()}} --list --unsorted

# The inner loop: what most changes break, within minutes. Rooms of `it` can be added
check *rooms:
    ci/check {{rooms}}

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

# Rooms of the integration tests, such as `just it walks::`
it *filters:
    cargo test --test it -- {{filters}}

# The store contract and the tests of PostgreSQL, with a PostgreSQL and a Redis of its own beside them
store:
    ci/with-services cargo test -p vitrine-store

# Rooms of the integration tests on PostgreSQL
it-postgres *filters:
    VITRINE_TEST_STORE=postgres ci/with-services cargo test --test it -- {{filters}}

# Any command with a PostgreSQL and a Redis of its own beside it
with-services +command:
    ci/with-services {{command}}

# Any command beside the demo
with-demo +command:
    ci/with-demo {{command}}

# Random operations against a naive model of the contract
checker:
    cargo test --test checker

# Three servers over a PostgreSQL that is killed, stopped and cut off
fleet:
    cargo test --test fleet

# Attacks on a server, and what healthy clients see meanwhile
attacks:
    cargo test --test attacks

# Death and failing disks at each step that writes
faults:
    cargo test --features fail-points --test faults

# The fuzz corpora and seeded inputs, replayed
replay:
    cargo test -p vitrine-fuzz

# Random search by fuzz targets: seconds, then targets
fuzz *args:
    ci/fuzz {{args}}

# Code of the model or the server changed without a test noticing: part, shard
mutants *args:
    ci/mutants {{args}}

# Pages for people in Chromium; pictures go to target/screenshots
browser *files:
    ci/browser {{files}}

# The program against its own OpenAPI document: examples an operation
schemathesis *examples:
    ci/schemathesis {{examples}}

# The OpenAPI document as others use it: linters, mock server, generated clients
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

# Whether the client crate still offers what it offered
semver *commit:
    ci/semver {{commit}}

# Whether the oldest Rust that is promised builds it
oldest-rust:
    ci/oldest-rust

# The program as it ships: target/release/vitrine
release:
    ci/release

# Whether two release builds are the same bytes
reproducible:
    ci/reproducible

# The Debian package: made, looked at, installed over a copy of the system
package *args:
    ci/package {{args}}

# What the program is made of, as CycloneDX
sbom:
    ci/sbom

# How fast serving is, beside other servers (bench/README.md)
bench *args:
    ci/bench {{args}}

# Whether serving became slower than in another commit, the parent by default
bench-regression *args:
    ci/bench-regression {{args}}

# How fast loading is (docs/performance.md)
bench-load *args:
    ci/bench-load {{args}}

# How fast the catalog browser is
bench-browser *args:
    ci/bench-browser {{args}}

# How fast a server over PostgreSQL starts and follows
bench-postgres *args:
    ci/bench-postgres {{args}}

# What single steps of a request cost
micro-bench:
    cargo bench -p vitrine -p vitrine-ingest -p vitrine-model

# Where the instructions of a request go; needs valgrind
budget *args:
    ci/budget {{args}}
