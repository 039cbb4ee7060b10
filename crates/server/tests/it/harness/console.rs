//! The console, and operators who are signed in to it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use super::{PATIENCE, Reply, Server, Store, text};

/// Password of all operators of tests.
pub const PASSWORD: &str = "correct-horse-battery";

/// A server whose console is used.
pub struct Console {
    pub store: Store,
    pub server: Server,
}

/// A session of an operator.
pub struct Session {
    pub name: String,
    cookie: String,
    token: String,
}

impl Session {
    /// Returns the header with its cookie.
    pub fn cookie(&self) -> [(&str, &str); 1] {
        [("Cookie", &self.cookie)]
    }

    /// Returns the token of its forms.
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// Returns the value of a hidden field.
pub fn hidden(html: &str, name: &str) -> Option<String> {
    let start = format!("<input type=\"hidden\" name=\"{name}\" value=\"");
    let rest = html.split_once(&start)?.1;
    Some(rest.split('"').next()?.to_owned())
}

/// Encodes a value for a form.
pub fn encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

impl Console {
    /// Serves a store.
    pub fn open(store: Store, options: &[&str]) -> Self {
        let usual = ["--admin-listen", "127.0.0.1:0"];
        let server = store.serve_with(&[&usual, options].concat());
        Self { store, server }
    }

    /// Adds an operator.
    pub fn add(&self, name: &str, role: &str) {
        let mut command = self.store.command(&["operators", "add", name]);
        command.args(["--role", role, "--password-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().expect("vitrine runs");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(PASSWORD.as_bytes()).expect("written");
        drop(input);
        assert!(child.wait().expect("it ends").success());
    }

    /// Adds an operator, unless it is there.
    pub fn add_if_missing(&self, name: &str, role: &str) {
        let all = self.store.json(&["operators", "list", "--json"]);
        let mut all = all.as_array().expect("a list").iter();
        if !all.any(|one| one["name"] == name) {
            self.add(name, role);
        }
    }

    /// Sends bytes.
    pub fn raw(&self, bytes: &[u8]) -> Reply {
        let mut socket = TcpStream::connect(self.server.admin()).expect("a connection");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let _ = socket.write_all(bytes);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        Reply::parse(&answer, "GET")
    }

    /// Sends a request to a host.
    pub fn send_as(
        &self,
        host: &str,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" {
            let length = body.len();
            head.push_str(&format!(
                "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"
            ));
        }
        self.raw(format!("{head}\r\n{body}").as_bytes())
    }

    /// Asks for a page.
    pub fn get(&self, target: &str, headers: &[(&str, &str)]) -> Reply {
        self.send_as("127.0.0.1", "GET", target, headers, "")
    }

    /// Sends a body, as a page of the console would.
    pub fn post(&self, target: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let own = [("Sec-Fetch-Site", "same-origin"), ("Origin", "null")];
        let headers = [&own[..], headers].concat();
        self.send_as("127.0.0.1", "POST", target, &headers, body)
    }

    /// Sends a form of a session.
    pub fn post_form(&self, target: &str, session: &Session, fields: &[(&str, &str)]) -> Reply {
        let mut body = format!("form_token={}", session.token);
        for (name, value) in fields {
            body.push_str(&format!("&{name}={}", encoded(value)));
        }
        self.post(target, &session.cookie(), &body)
    }

    /// Tries to sign in.
    pub fn sign_in_with(&self, name: &str, password: &str, next: &str) -> Reply {
        let (name, password) = (encoded(name), encoded(password));
        let body = format!("name={name}&password={password}&next={}", encoded(next));
        self.post("/sign-in", &[], &body)
    }

    /// Returns the cookie that a reply sets, as a request has it.
    pub fn cookie_of(reply: &Reply) -> String {
        let cookie = reply.header("set-cookie").expect("a cookie");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    /// Signs an operator in.
    pub fn sign_in(&self, name: &str) -> Session {
        let reply = self.sign_in_with(name, PASSWORD, "");
        assert_eq!(reply.status, 303, "{}", text(&reply.body));
        let cookie = Self::cookie_of(&reply);
        let page = self.get("/acts", &[("Cookie", &cookie)]);
        Session {
            name: name.to_owned(),
            token: hidden(&text(&page.body), "form_token").expect("a token"),
            cookie,
        }
    }
}
