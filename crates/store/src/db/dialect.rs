//! SQL as SQLite takes it. It is written as PostgreSQL takes it, within what both can do.

/// What differs by its name only: SQLite has one schema, one writer, bytes for an order, and no types of expressions.
const REPLACED: [(&str, &str); 8] = [
    ("vitrine.", ""),
    (" for update skip locked", ""),
    (" for update", ""),
    (" collate \"C\"", ""),
    ("::bigint", ""),
    ("greatest(", "max("),
    ("bool_or(", "max("),
    ("$", "?"),
];

/// Translates a statement.
pub(super) fn sqlite(sql: &str) -> String {
    let mut translated = sql.to_owned();
    for (postgres, sqlite) in REPLACED {
        if translated.contains(postgres) {
            translated = translated.replace(postgres, sqlite);
        }
    }
    // `= any(?1)` of an array is a JSON array here.
    while let Some(start) = translated.find("= any(") {
        let end = translated[start..]
            .find(')')
            .map_or(translated.len(), |end| start + end + 1);
        let array = translated[start + "= any(".len()..end]
            .trim_end_matches(')')
            .to_owned();
        let list = format!("in (select value from json_each({array}))");
        translated.replace_range(start..end, &list);
    }
    translated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_is_translated() {
        let sql =
            "update vitrine.state set n = greatest(n, $1) where id = any($2) and m = $1 for update";
        let expected = "update state set n = max(n, ?1) \
                        where id in (select value from json_each(?2)) and m = ?1";
        assert_eq!(sqlite(sql), expected);
    }
}
