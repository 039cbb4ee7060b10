//! Look-up of a password that isn't in the address, as libpq does it: `PGPASSWORD`, then the file of `PGPASSFILE` or
//! `~/.pgpass`.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;

use super::target::host_and_port;

/// Returns the password, if there is one.
pub(super) fn find(config: &Config) -> Result<Option<String>, String> {
    if let Ok(password) = std::env::var("PGPASSWORD") {
        return Ok(Some(password));
    }
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let Some(path) = named.or_else(home) else {
        return Ok(None);
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("can't read {}: {error}", path.display())),
    };
    let mode = path.metadata().map(|file| file.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        // libpq ignores such a file, so that the login fails without a visible reason.
        return Err(format!(
            "the password file {} can be read by others; `chmod 600` it",
            path.display()
        ));
    }
    let (host, port) = host_and_port(config);
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    Ok(within(&text, [&host, &port.to_string(), database, user]))
}

/// Returns the password of the first line whose four fields match; `*` matches anything, and a backslash escapes `:` and
/// itself.
fn within(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let [own @ .., password] = fields.as_slice() else {
                return None;
            };
            let matches = own.len() == 4
                && own
                    .iter()
                    .zip(wanted)
                    .all(|(own, wanted)| own == "*" || own == wanted);
            matches.then(|| password.clone())
        })
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        // Colons in a password needn't be escaped.
        let is_password = fields.len() == 5;
        let Some(last) = fields.last_mut() else {
            break;
        };
        match character {
            '\\' => last.extend(characters.next()),
            ':' if !is_password => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_file_is_read_as_libpq_does() {
        let text =
            "# h:1:d:u:comment\nh:2:d:u:other\nh:1:*:u:a\\:b:c\\\\\n*:*:*:*:last\nshort:line";
        let find = |wanted| within(text, wanted);
        assert_eq!(find(["h", "1", "d", "u"]).as_deref(), Some("a:b:c\\"));
        assert_eq!(find(["h", "2", "d", "u"]).as_deref(), Some("other"));
        assert_eq!(find(["i", "1", "d", "u"]).as_deref(), Some("last"));
        assert_eq!(within("h:1:d:u:p", ["h", "1", "d", "v"]), None);
    }
}
