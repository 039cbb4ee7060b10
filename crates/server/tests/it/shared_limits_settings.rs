//! Settings of shared limits, and those that are refused.

use std::process::Output;

use crate::harness::{Redis, Server, text};
use crate::shared_limits::{QUOTA, catalog, is_granted, wait_for_breakers};

#[test]
fn password_is_sent_only_to_redis() {
    let options = ["--requirepass", "open-sesame"];
    let Some(redis) = Redis::start_with("a Redis with a password", &options) else {
        return;
    };
    let store = catalog();
    let key = store.key("partner", &QUOTA);
    let url = redis.url();
    for (password, open) in [("open-sesame\n", 0.0), ("closed-sesame\n", 1.0), ("", 1.0)] {
        let file = store.write("password", password).display().to_string();
        let options = ["--limits", &url, "--limits-password-file", &file];
        let server = store.serve_with(&[&options[..], &["--admin-listen", "127.0.0.1:0"]].concat());
        wait_for_breakers(std::slice::from_ref(&server), open);
        assert!(is_granted(&server.get(&key, "/v2/ping")));
        let said = server.stderr() + &server.stdout();
        assert!(!said.contains("sesame"), "{said}");
    }
    let mut command = store.command(&["serve", "--listen", "127.0.0.1:0", "--limits", &url]);
    command.args(["--admin-listen", "127.0.0.1:0"]);
    command.env("VITRINE_LIMITS_PASSWORD", "open-sesame");
    wait_for_breakers(&[Server::start(command)], 0.0);
}

#[test]
fn redis_over_tls_must_show_its_certificate() {
    let tls = |name: &str| format!("{}/tests/it/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = (tls("server.pem"), tls("server.key"));
    let options = [
        ["--port", "0"],
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-auth-clients", "no"],
    ];
    let Some(redis) = Redis::start_with("a Redis with TLS", &options.concat()) else {
        return;
    };
    let store = catalog();
    let url = format!("rediss://localhost:{}", redis.port());
    for (authorities, open) in [(tls("authority.pem"), 0.0), ("/dev/null".to_owned(), 1.0)] {
        let mut command = store.command(&["serve", "--listen", "127.0.0.1:0", "--limits", &url]);
        command.args(["--admin-listen", "127.0.0.1:0"]);
        command.env("SSL_CERT_FILE", authorities);
        wait_for_breakers(&[Server::start(command)], open);
    }
}

#[test]
fn wrong_limit_settings_are_refused() {
    let store = catalog();
    let refused = |options: &[&str]| -> String {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], options].concat();
        let Output { status, stderr, .. } = store.run(&arguments);
        assert_eq!(status.code(), Some(2), "{options:?}: {}", text(&stderr));
        text(&stderr)
    };
    let said = refused(&["--limits", "redis://:sesame@127.0.0.1"]);
    assert!(
        !said.contains("sesame") && said.contains("--limits-password-file"),
        "{said}"
    );
    for wrong in [
        "",
        "redis",
        "memcached://127.0.0.1",
        "redis://",
        "redis://127.0.0.1/x",
    ] {
        assert!(
            refused(&["--limits", wrong]).contains("redis://127.0.0.1:6379"),
            "{wrong}"
        );
    }
    for wrong in ["", "60", "0/60", "none"] {
        let said = refused(&[&format!("--failed-keys={wrong}")]);
        assert!(
            said.contains("60/60") || said.contains("600/60"),
            "{wrong}: {said}"
        );
    }
    for wrong in ["10.0.0.0/33", "localhost", "10.0.0.1,"] {
        let said = refused(&[&format!("--trusted-proxies={wrong}")]);
        assert!(said.contains("10.0.0.0/8"), "{wrong}: {said}");
    }
    refused(&["--forwarded-header", "x-real-ip"]);
}
