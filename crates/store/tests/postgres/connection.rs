//! Connections to the database: TLS, passwords, a replica.

use std::process::{Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use vitrine_store::Publication as _;
use vitrine_store::{IfMissing, StoreError};

use crate::cluster::{Cluster, is_installed};
use crate::{address, codes, history, open, product, publish, told, wait_for};

/// Creates an authority and a certificate of it for `localhost`, in the cluster's directory.
fn certify(cluster: &Cluster) {
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9";
    for arguments in [
        "-subj /CN=authority -keyout authority.key -out authority.pem",
        "-subj /CN=stranger -keyout stranger.key -out stranger.pem",
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost \
         -addext basicConstraints=CA:FALSE -CA authority.pem -CAkey authority.key \
         -keyout server.key -out server.pem",
    ] {
        let mut command = Command::new("openssl");
        command.args(new.split(' ')).args(arguments.split(' '));
        command.current_dir(cluster.path("")).stderr(Stdio::null());
        assert!(command.status().expect("openssl runs").success());
    }
    let mut chown = Command::new("chown");
    chown.arg(format!("--reference={}", cluster.path("data").display()));
    chown.arg(cluster.path("server.key"));
    assert!(chown.status().expect("chown runs").success());
}

#[test]
fn sslmode_is_obeyed() {
    if !is_installed() {
        return;
    }
    let cluster = Cluster::start("");
    let plain = |mode: &str| format!("{}?sslmode={mode}", cluster.url("postgres"));
    let refused = open(&plain("require"), IfMissing::Create).err().unwrap();
    assert!(
        told(&refused).contains("does not support TLS"),
        "{}",
        told(&refused)
    );
    open(&plain("prefer"), IfMissing::Create).unwrap();
    certify(&cluster);
    let path = |name: &str| cluster.path(name).display().to_string();
    cluster.write(
        "postgresql.auto.conf",
        &format!(
            "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
            path("server.pem"),
            path("server.key")
        ),
    );
    cluster.write("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    cluster.stop();
    cluster.begin();
    let refused = open(&plain("disable"), IfMissing::Create).err().unwrap();
    assert!(
        told(&refused).contains("no encryption"),
        "{}",
        told(&refused)
    );
    for mode in ["prefer", "require"] {
        open(&plain(mode), IfMissing::Create).unwrap();
    }
    let full = |host: &str, authority: &str| {
        let port = cluster.port;
        open(
            &format!(
                "postgres://vitrine@{host}:{port}/postgres?sslmode=verify-full&sslrootcert={}",
                path(authority)
            ),
            IfMissing::Create,
        )
    };
    let store = full("localhost", "authority.pem").unwrap();
    publish(&store, &[product("A", "1")]);
    assert_eq!(codes(&store), ["A"]);
    for (host, authority) in [
        ("localhost", "stranger.pem"),
        ("127.0.0.1", "authority.pem"),
    ] {
        let told = told(&full(host, authority).err().unwrap());
        assert!(told.contains("certificate"), "{told}");
    }
}

#[test]
fn password_grants_access_and_is_never_shown() {
    if !is_installed() {
        return;
    }
    let cluster = Cluster::start("password_encryption = 'scram-sha-256'");
    crate::database::run(
        &cluster.url("postgres"),
        "alter user vitrine password 'right-secret'",
    );
    cluster.write("pg_hba.conf", "host all all 127.0.0.1/32 scram-sha-256\n");
    cluster.reload();
    let url = |password: &str| {
        cluster
            .url("postgres")
            .replace('@', &format!("{password}@"))
    };
    wait_for("the reload", || open(&url(""), IfMissing::Create).err());
    for url in [
        url(":wrong-secret"),
        url(""),
        url(":wrong-secret") + "?colour=red",
        url(":wrong-secret").replace("127", "x"),
    ] {
        let told = told(&open(&url, IfMissing::Create).err().unwrap());
        assert!(!told.contains("secret"), "{told}");
    }
    // A server waits for the right password or the right database.
    let no_database = url(":right-secret").replace("/postgres", "/none");
    for url in [url(":wrong-secret"), no_database] {
        let followed = address(&url).open_to_follow(IfMissing::Create, Duration::ZERO);
        let error = followed.unwrap().state().unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert!(error.may_come_back());
    }
    let store = open(&url(":right-secret"), IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")]);
    // A separate password takes precedence over the address's.
    let given = address(&url(":wrong-secret")).with_password("right-secret".to_owned());
    assert!(!format!("{given} {given:?}").contains("secret"));
    given.open(IfMissing::Refuse, Duration::ZERO).unwrap();
}

#[test]
fn replica_is_followed_and_never_written() {
    if !is_installed() {
        return;
    }
    let primary = Cluster::start("wal_level = replica");
    let store = open(&primary.url("postgres"), IfMissing::Create).unwrap();
    publish(&store, &[product("A", "1")]);
    let replica = primary.replica();
    let followed = address(&replica.url("postgres")).open_replica().unwrap();
    wait_for("the first revision", || {
        (followed.state().unwrap() == store.state().unwrap()).then_some(())
    });
    assert_eq!(codes(&followed), ["A"]);
    publish(&store, &[product("B", "1")]);
    wait_for("the second", || {
        (followed.state().unwrap() == store.state().unwrap()).then_some(())
    });
    assert_eq!(codes(&followed), ["B"]);
    assert!(followed.is_replica().unwrap() && !store.is_replica().unwrap());
    assert_eq!(history(&followed), (2, 2));
    assert_eq!(followed.check().unwrap(), []);
    assert!(followed.subscribe(std::sync::Arc::new(|| {})).is_none());
    followed
        .record_key_use(&[("p".to_owned(), Timestamp::UNIX_EPOCH)])
        .unwrap();
    let refused = followed.publish().err().unwrap();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
    assert!(
        followed
            .change_keys(&crate::audited::set_key(), None, &mut |_| Vec::new())
            .is_err()
    );
    // A replica in the place of the primary reports it, too.
    let mistaken = open(&replica.url("postgres"), IfMissing::Create).unwrap();
    let refused = mistaken
        .publish()
        .and_then(|mut publication| publication.put(&product("C", "1")).map(drop))
        .err();
    assert!(refused.is_none_or(|error| matches!(error, StoreError::ReadOnly { .. })));
    // A replica without a store.
    crate::database::run(&primary.url("postgres"), "drop schema vitrine cascade");
    wait_for("the drop", || followed.state().err());
    let missing = wait_for("it to be missed", || {
        let opened = address(&replica.url("postgres")).open_replica();
        opened.unwrap().state().err()
    });
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    assert!(missing.may_come_back());
}
