//! Where user code runs: each place has a name in `src/os/user_code/site.rs`, and a row in the
//! table of what user code may do there. That includes a fork: the table is for Unix.

#[path = "common/mod.rs"]
mod common;

#[cfg(all(debug_assertions, unix))]
#[path = "user_code/actions.rs"]
mod actions;
#[cfg(all(debug_assertions, unix))]
#[path = "common/heads.rs"]
mod heads;
#[cfg(all(debug_assertions, unix))]
#[path = "user_code/reach.rs"]
mod reach;
#[cfg(all(debug_assertions, unix, feature = "tracing"))]
#[path = "common/subscriber.rs"]
mod subscriber;
#[cfg(all(debug_assertions, unix))]
#[path = "user_code/table.rs"]
mod table;

/// The names of the places.
#[cfg(all(debug_assertions, unix))]
fn sites() -> Vec<String> {
    let text = include_str!("../src/os/user_code/site.rs");
    let variants = text.split("pub enum Site {").nth(1).unwrap().split('}').next().unwrap();
    let names = variants.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    names.filter_map(|name| Some(name.strip_suffix(',')?.to_owned())).collect()
}

#[test]
#[cfg(all(debug_assertions, unix))]
fn each_place_is_in_the_table() {
    let sites = sites();
    assert!(sites.len() > 15, "{sites:?}");
    for site in sites {
        let is_there = table::ROWS.iter().any(|row| format!("{:?}", row.site) == site);
        assert!(is_there, "no row for {site}");
    }
    for row in &table::ROWS {
        let is_said = [row.held, row.used, row.left].iter().all(|column| !column.is_empty());
        assert!(is_said, "{:?} by {}", row.site, row.by);
    }
}
