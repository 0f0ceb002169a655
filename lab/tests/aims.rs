//! The aims of `rcu bench` and docs/MEASURED.md: each stands on a figure of that page.

use bench::suites::promises::{self, Against, Bound, Promise};

fn row(promise: &Promise) -> String {
    let Promise { case, metric, rival, against, bound, measured, or_at_most } = promise;
    let beside = match against {
        Against::Rival(name) => name,
        Against::Best => "the best",
        Against::Nothing => "–",
    };
    let aim = match bound {
        Bound::AtMost(most) => format!("at most {most}"),
        // Some are a share of what was measured.
        Bound::AtLeast(least) => format!("at least {}", (100.0 * least).round() / 100.0),
    };
    let or = or_at_most.map(|most| format!(", or {most}")).unwrap_or_default();
    format!("| `{case}` | {metric} | {rival} | {beside} | {measured} | {aim}{or} |")
}

#[test]
fn the_page_has_every_aim_with_the_figure_that_it_stands_on() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/MEASURED.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let (_, aims) = page.split_once("## What is aimed at").expect("the section is there");
    let aims = aims.split("\n## ").next().unwrap_or_default();
    let kept: Vec<&str> = aims.lines().filter(|line| line.starts_with("| `")).collect();
    let made: Vec<String> = promises::all().map(row).collect();
    assert!(kept == made, "the table should be:\n{}", made.join("\n"));
}
