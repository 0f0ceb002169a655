//! The report as one self-contained page: no script, nothing loaded from anywhere, light or dark
//! as the reader's system is.

use std::fmt::Display;

use super::rank::{Place, Ranking};
use super::remarks;
use super::report::{
    RANKING_HEADER, Report, STAR_LEGEND, TABLE_LEGEND, describe_keys, ranking_cells, reason,
    sweep_cells, sweep_header,
};
use super::sweep::Sweep;
use crate::costs::table as costs_table;
use crate::html::{self, Markup, soft, table};
use crate::plot::{self, Bar, Dots, Line};
use crate::provenance::Provenance;
use bench::costs::Costs;
use bench::units;

/// What throughput is in.
const THROUGHPUT: &str = "million operations a second";

/// The page.
pub(super) fn page(report: &Report, provenance: &Provenance) -> String {
    let title = format!("rcu advise: {}", report.workload.name);
    html::page(&title, provenance, |body| fill(body, report))
}

fn fill(body: &mut Markup, report: &Report) {
    let name = &report.workload.name;
    body.leaf("h1", &[], format_args!("Which synchronisation fits: {name}"));
    soft(body, &report.run);
    soft(body, format_args!("{}.", report.workload));
    recommendation(body, report);
    report.tables.iter().for_each(|table| ranking(body, report, table));
    if !report.places().is_empty() {
        reasons(body, report);
    }
    sweeps(body, report);
    surroundings(body, report);
    if let Some(costs) = &report.costs {
        costs_table(body, costs);
    }
    soft(body, format_args!("Drawn from seed {}.", report.seed));
}

fn recommendation(body: &mut Markup, report: &Report) {
    let alarm = report.checksum_errors() > 0 || report.too_noisy().is_some();
    let class = if alarm { "verdict alarm" } else { "verdict" };
    body.element("div", &[("class", &class)], |verdict| {
        for paragraph in report.recommendation() {
            verdict.leaf("p", &[], paragraph);
        }
    });
    for choice in report.choices() {
        let (head, program) = remarks::code(choice);
        body.leaf("h2", &[], "Code to paste");
        soft(body, head);
        body.leaf("pre", &[], program);
    }
}

fn ranking(body: &mut Markup, report: &Report, ranking: &Ranking) {
    let places = &ranking.places;
    body.leaf("h2", &[], report.title(ranking));
    soft(body, ranking.by.sentence());
    body.leaf("h3", &[], "Throughput");
    soft(
        body,
        "Median over the slices, in million operations a second; whiskers from the lower to the \
         upper quartile; ours in green.",
    );
    plot::bars(body, "Throughput of each design", THROUGHPUT, &throughput_bars(places));
    if places.iter().any(|place| place.update_ns.is_some()) {
        body.leaf("h3", &[], "Latency of updates");
        soft(body, "Median (hollow), 99 % and 99.9 % (large); logarithmic.");
        let title = "Update latency of each design";
        plot::dots(body, title, &latency_dots(places), units::nanoseconds);
    }
    body.leaf("h3", &[], "Numbers");
    table(body, |table| {
        header(table, &RANKING_HEADER.map(str::to_owned), 2);
        for place in places {
            row(table, place.design.ours.then_some("ours"), |row| {
                for (column, text) in ranking_cells(place).into_iter().enumerate() {
                    cell(row, "td", (column != 1).then_some("n"), text);
                }
            });
        }
    });
    for (name, why) in &ranking.unranked {
        soft(body, format_args!("{name} has no figure: {why}."));
    }
}

fn reasons(body: &mut Markup, report: &Report) {
    soft(body, TABLE_LEGEND);
    for remark in report.disclosures() {
        soft(body, remark);
    }
    body.leaf("h3", &[], "Why");
    body.element("dl", &[], |list| {
        for place in report.places() {
            entry(list, place.design.name, reason(place));
        }
    });
}

fn row(table: &mut Markup, class: Option<&str>, fill: impl FnOnce(&mut Markup)) {
    let class = class.as_ref().map(|class| ("class", class as &dyn Display));
    table.element("tr", class.as_slice(), fill);
}

fn cell(row: &mut Markup, name: &'static str, class: Option<&str>, text: impl Display) {
    let class = class.as_ref().map(|class| ("class", class as &dyn Display));
    row.leaf(name, class.as_slice(), text);
}

/// A term, and what there is to say of it.
fn entry(list: &mut Markup, term: impl Display, text: impl Display) {
    list.leaf("dt", &[], term);
    list.leaf("dd", &[], text);
}

/// A header whose cells are numeric but for those before `names` that name things.
fn header(table: &mut Markup, titles: &[String], names: usize) {
    row(table, None, |row| {
        for (column, title) in titles.iter().enumerate() {
            let name = if names == 2 { column == 1 } else { column == 0 };
            cell(row, "th", (!name).then_some("n"), title);
        }
    });
}

fn throughput_bars(places: &[Place]) -> Vec<Bar> {
    let bar = |place: &Place| Bar {
        name: place.design.name.to_owned(),
        value: place.throughput.median / 1e6,
        low: place.throughput.low / 1e6,
        high: place.throughput.high / 1e6,
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

fn sweeps(body: &mut Markup, report: &Report) {
    let swept: Vec<&Sweep> =
        report.sweeps.iter().filter(|sweep| !sweep.points.is_empty()).collect();
    if swept.is_empty() {
        return;
    }
    body.leaf("h2", &[], "Where the answer flips");
    soft(body, "The leaders with one thing changed, in million operations a second.");
    for sweep in swept {
        sweep_section(body, sweep);
    }
}

fn sweep_section(body: &mut Markup, sweep: &Sweep) {
    let head = sweep_header(sweep);
    body.leaf("h3", &[], sweep.over.title());
    if sweep.points.len() > 1 {
        plot::lines(body, sweep.over.title(), THROUGHPUT, &head[1..], &sweep_lines(sweep));
    }
    table(body, |table| {
        header(table, &head, 1);
        for design in sweep.designs() {
            row(table, None, |row| {
                for (column, text) in sweep_cells(sweep, design).into_iter().enumerate() {
                    let class = if text.ends_with('*') { "n first" } else { "n" };
                    cell(row, "td", (column > 0).then_some(class), text);
                }
            });
        }
    });
    soft(body, STAR_LEGEND);
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

fn surroundings(body: &mut Markup, report: &Report) {
    body.leaf("h2", &[], "Machine and input");
    body.element("dl", &[], |list| {
        for (name, value) in report.machine.rows() {
            entry(list, name, value);
        }
        list.leaf("dt", &[], "keys");
        list.element("dd", &[], |keys| {
            keys.text(describe_keys(&report.keys));
            for note in report.keys.notes() {
                keys.text(format_args!("; {note}"));
            }
        });
    });
}

fn costs_table(body: &mut Markup, costs: &Costs) {
    let year = costs.published.year.to_string();
    let head = ["operation", "here", "cycles", &year, "efficiency"].map(str::to_owned);
    let cycle = costs_table::cycle_ns(costs);
    body.leaf("h2", &[], "What synchronisation costs here");
    let title = costs_table::plot_title(costs);
    soft(body, &title);
    plot::intervals(body, &title, &costs_table::axis(), &costs_table::intervals(costs));
    table(body, |table| {
        header(table, &head, 1);
        for cost in &costs.rows {
            row(table, None, |row| {
                for (column, text) in costs_table::cells(costs, cost, cycle).into_iter().enumerate()
                {
                    cell(row, "td", (column > 0).then_some("n"), text);
                }
            });
        }
    });
    for remark in costs_table::remarks(costs) {
        soft(body, remark);
    }
}
