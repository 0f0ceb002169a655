//! The report as one self-contained page: no script, nothing loaded from anywhere, light or dark
//! as the reader's system is.

use bench::costs::Costs;
use bench::units;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::{self, Bar, Dots, Line};
use super::rank::Place;
use super::report::{
    RANKING_HEADER, Report, TABLE_LEGEND, describe_keys, ranking_cells, reason, sweep_cells,
    sweep_header,
};
use super::sweep::Sweep;
use crate::costs::table;

const STYLE: &str = include_str!("page.css");

/// The page.
pub(super) fn page(report: &Report) -> String {
    let title = format!("rcu advise: {}", report.workload.name);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Which synchronisation fits: " (report.workload.name) }
                p class="soft" { (report.workload) "." }
                (recommendation(report))
                @if !report.places.is_empty() { (ranking(report)) }
                (sweeps(report))
                (surroundings(report))
                @if let Some(costs) = &report.costs { (costs_table(costs)) }
                p class="soft" {
                    "Written by rcu " (env!("CARGO_PKG_VERSION")) ", seed " (report.seed) "."
                }
            }
        }
    }
    .into_string()
}

fn recommendation(report: &Report) -> Markup {
    let alarm = report.checksum_errors() > 0 || report.noise.is_too_much();
    html! {
        div class=(if alarm { "verdict alarm" } else { "verdict" }) {
            @for paragraph in report.recommendation() { p { (paragraph) } }
        }
    }
}

fn ranking(report: &Report) -> Markup {
    let places = &report.places;
    html! {
        h2 { "Ranking" }
        h3 { "Throughput" }
        p class="soft" { "Median over the rounds, in million operations a second; whiskers from the \
            lower to the upper quartile; ours in green." }
        (plot::bars("Throughput of each design", &throughput_bars(places)))
        @if places.iter().any(|place| place.update_ns.is_some()) {
            h3 { "Latency of updates" }
            p class="soft" { "Median (hollow), 99 % and 99.9 % (large); logarithmic." }
            (plot::dots("Update latency of each design", &latency_dots(places), units::nanoseconds))
        }
        h3 { "Numbers" }
        div class="scroll" { table {
            (header(&RANKING_HEADER.map(str::to_owned), 2))
            @for place in places {
                tr class=[place.design.ours.then_some("ours")] {
                    @for (column, cell) in ranking_cells(place).into_iter().enumerate() {
                        td class=[(column != 1).then_some("n")] { (cell) }
                    }
                }
            }
        } }
        p class="soft" { (TABLE_LEGEND) }
        h3 { "Why" }
        dl { @for place in places { dt { (place.design.name) } dd { (reason(place)) } } }
    }
}

/// A header whose cells are numeric but for those before `names` that name things.
fn header(titles: &[String], names: usize) -> Markup {
    html! {
        tr { @for (column, title) in titles.iter().enumerate() {
            @let name = if names == 2 { column == 1 } else { column == 0 };
            th class=[(!name).then_some("n")] { (title) }
        } }
    }
}

fn throughput_bars(places: &[Place]) -> Vec<Bar> {
    let bar = |place: &Place| Bar {
        name: place.design.name.to_owned(),
        value: place.throughput.median,
        low: place.throughput.low,
        high: place.throughput.high,
        text: units::figures(place.throughput.median / 1e6),
        ours: place.design.ours,
    };
    places.iter().map(bar).collect()
}

fn latency_dots(places: &[Place]) -> Vec<Dots> {
    let dots = |place: &Place| {
        let latency = place.update_ns?;
        let values = [latency.p50, latency.p99, latency.p99_9].map(|ns| ns as f64).to_vec();
        Some(Dots {
            name: place.design.name.to_owned(),
            values,
            text: units::nanoseconds(latency.p99_9 as f64),
            ours: place.design.ours,
        })
    };
    places.iter().filter_map(dots).collect()
}

fn sweeps(report: &Report) -> Markup {
    let swept: Vec<&Sweep> =
        report.sweeps.iter().filter(|sweep| !sweep.points.is_empty()).collect();
    html! {
        @if !swept.is_empty() {
            h2 { "Where the answer flips" }
            p class="soft" { "The leaders with one thing changed, in million operations a second." }
            @for sweep in swept { (sweep_section(sweep)) }
        }
    }
}

fn sweep_section(sweep: &Sweep) -> Markup {
    let head = sweep_header(sweep);
    html! {
        h3 { (sweep.over.title()) }
        @if sweep.points.len() > 1 {
            (plot::lines(sweep.over.title(), &head[1..], &sweep_lines(sweep)))
        }
        div class="scroll" { table {
            (header(&head, 1))
            @for design in sweep.designs() {
                tr { @for (column, cell) in sweep_cells(sweep, design).into_iter().enumerate() {
                    @let first = cell.ends_with('*');
                    td class=[(column > 0).then_some(if first { "n first" } else { "n" })] { (cell) }
                } }
            }
        } }
        p class="soft" { "* is first, or within noise of it." }
    }
}

fn sweep_lines(sweep: &Sweep) -> Vec<Line> {
    let line = |name: &'static str| {
        let of = |point: &super::sweep::Point| {
            point.places.iter().find(|place| place.design.name == name).cloned()
        };
        let ours = sweep.points.iter().find_map(of).is_some_and(|place| place.design.ours);
        let million = |place: Place| place.throughput.median / 1e6;
        let values = sweep.points.iter().map(|point| of(point).map(million)).collect();
        Line { name: name.to_owned(), values, ours }
    };
    let mut lines: Vec<Line> = sweep.designs().into_iter().map(line).collect();
    // The same order, and so the same colours, in every plot of the page.
    lines.sort_by(|a, b| b.ours.cmp(&a.ours).then_with(|| a.name.cmp(&b.name)));
    lines
}

fn surroundings(report: &Report) -> Markup {
    html! {
        h2 { "Machine and input" }
        dl {
            @for (name, value) in report.machine.rows() { dt { (name) } dd { (value) } }
            dt { "keys" } dd {
                (describe_keys(&report.keys))
                @for note in report.keys.notes() { "; " (note) }
            }
        }
    }
}

fn costs_table(costs: &Costs) -> Markup {
    let year = costs.published.year.to_string();
    let head = ["operation", "here", "cycles", &year].map(str::to_owned);
    let cycle = table::cycle_ns(costs);
    html! {
        h2 { "What synchronisation costs here" }
        div class="scroll" { table {
            (header(&head, 1))
            @for row in &costs.rows {
                tr { @for (column, cell) in table::cells(row, cycle).into_iter().enumerate() {
                    td class=[(column > 0).then_some("n")] { (cell) }
                } }
            }
        } }
        @for remark in table::remarks(costs) { p class="soft" { (remark) } }
    }
}
