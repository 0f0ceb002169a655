//! Where user code runs: each place has a name in `src/os/user_code/site.rs`, and a row in the
//! table of what user code may do there. That includes a fork: the table is for Unix.
#![cfg(all(debug_assertions, unix))]

#[path = "user_code/actions.rs"]
mod actions;
#[path = "common/mod.rs"]
mod common;
#[path = "common/heads.rs"]
mod heads;
#[path = "user_code/reach.rs"]
mod reach;
#[cfg(feature = "tracing")]
#[path = "common/subscriber.rs"]
mod subscriber;
#[path = "user_code/table.rs"]
mod table;

#[test]
fn each_place_is_in_the_table() {
    let text = include_str!("../src/os/user_code/site.rs");
    let variants = text.split("pub enum Site {").nth(1).unwrap().split('}').next().unwrap();
    let names = variants.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let sites: Vec<_> = names.filter_map(|name| name.strip_suffix(',')).collect();
    assert!(sites.len() > 15, "{sites:?}");
    for site in sites {
        let is_there = table::ROWS.iter().any(|row| format!("{:?}", row.site) == site);
        assert!(is_there, "no row for {site}");
    }
}
