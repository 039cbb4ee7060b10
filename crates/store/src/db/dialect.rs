//! SQL as SQLite takes it. It is written as PostgreSQL takes it, within what both can do.

/// Differences by name only: SQLite has one schema, one writer, bytes for an order, and no types of expressions. What
/// stands in `/*sqlite … */` is for SQLite alone: which index to take, or in which order to join. `/*scan*/` is for `scans`.
const REPLACED: [(&str, &str); 18] = [
    ("/*scan*/", ""),
    ("/*sqlite ", ""),
    ("*/", ""),
    ("vitrine.", ""),
    (" for update skip locked", ""),
    (" for update", ""),
    (" collate \"C\"", ""),
    (
        "(extract(epoch from clock_timestamp()) * 1000)::bigint",
        "cast(round(unixepoch('subsec') * 1000) as integer)",
    ),
    ("::bigint", ""),
    ("::text", ""),
    ("greatest(", "max("),
    ("bool_or(", "max("),
    ("strpos(", "instr("),
    ("json_agg(", "json_group_array("),
    ("json_build_object(", "json_object("),
    ("encode(", "lower(hex("),
    (", 'hex')", "))"),
    ("$", "?"),
];

/// Translates a statement.
pub(crate) fn sqlite(sql: &str) -> String {
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

    #[test]
    fn hints_and_functions_are_translated() {
        let sql = "select json_agg(json_build_object('d', encode(d, 'hex')))::text \
                   from vitrine.t /*sqlite indexed by i*/ where strpos(a, $1) > 0";
        let expected = "select json_group_array(json_object('d', lower(hex(d)))) \
                        from t indexed by i where instr(a, ?1) > 0";
        assert_eq!(sqlite(sql), expected);
    }
}
