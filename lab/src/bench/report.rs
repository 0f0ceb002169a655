//! What `rcu bench` found: tables, plots, and the JSON with every round, ratios and verdicts.

use ::bench::statistics::{Ratio, Spread, difference_at_most};
use ::bench::suites::Options;
use ::bench::suites::promises::{Against, Bound, Held, Verdict};
use ::bench::suites::rounds::{self, Case, Metric, Series, Unit};
use ::bench::units;
use comfy_table::{Cell, Color};
use serde_json::{Value, json};

use super::per_cpu_path;
use crate::distinct::no_figure;
use crate::html::Markup;
use crate::machine::Machine;
use crate::output::{self, Output, SchemaId, run_out};
use crate::plot::{self, Axis, Interval, Scale};

/// Prints the table of one case, ratios to `base` last, and below it how much its ties are worth.
pub(super) fn print(case: &Case, base: &str, output: &mut Output) {
    output.heading(format_args!("{} ({})", case.title, how_often(case)));
    let metrics = case.metrics.iter().map(|metric| metric.name.to_owned());
    let compared = case.metrics[..case.compared].iter();
    let ratios = compared.map(|metric| format!("{} / {base} (95 % interval)", metric.name));
    let header: Vec<_> = [String::new()].into_iter().chain(metrics).chain(ratios).collect();
    let rows = case.rivals.iter().map(|rival| row(case, rival, base));
    output.table(output::table(&header, 1.., rows));
    for number in 0..case.metrics.len() {
        output.picture(|| metric_plot(case, number));
    }
    let missing = |rival: &Series| Some((rival.name, rival.missing.as_ref()?.to_string()));
    let missing = no_figure(case.rivals.iter().filter_map(missing), "rivals");
    ties(case, base).iter().chain(&missing).for_each(|text| output.paragraph(text));
    for note in &case.notes {
        output.note(format_args!("{}: {note}", case.title));
    }
}

/// The medians of one metric, with their quartiles; nothing of those without a figure.
fn intervals(case: &Case, number: usize) -> Vec<Interval> {
    let interval = |rival: &Series| {
        let spread = rival.spread(number)?;
        let text = number_of(&case.metrics[number], spread.median);
        Some(Interval::of(rival.name, rival.ours, spread, text))
    };
    case.rivals.iter().filter_map(interval).collect()
}

/// One metric of all rivals, with the quartiles.
fn metric_plot(case: &Case, number: usize) -> Markup {
    let metric = &case.metrics[number];
    let axis = format!("{}, {}", metric.name, unit_of(metric));
    let axis = Axis::new(axis, Scale::Bars, units::figures);
    let title = format!("{}: {}, medians; whiskers: the quartiles.", case.title, metric.name);
    let mut part = plot::intervals(&title, axis, intervals(case, number));
    // A terminal shows what is compared; the tables above have the rest.
    part.chart = part.chart.filter(|_| number < case.compared);
    part
}

fn unit_of(metric: &Metric) -> &'static str {
    match metric.unit {
        Unit::Nanoseconds => "ns",
        Unit::PerSecond => "1/s",
        Unit::Objects => "objects",
        Unit::Percent => "%",
        Unit::Bytes => "bytes",
    }
}

/// How many values each rival has.
fn how_often(case: &Case) -> String {
    let counts =
        || case.rivals.iter().map(|rival| rival.values[0].len()).filter(|count| *count > 0);
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (1, 1) => "1 value".to_owned(),
        (least, most) if least == most => format!("{most} values"),
        (least, most) => format!("{least} to {most} values"),
    }
}

fn row(case: &Case, rival: &Series, base: &str) -> Vec<String> {
    let figure = |(number, metric): (usize, &Metric)| match rival.spread(number) {
        Some(spread) => format!("{} ± {}", number_of(metric, spread.median), half_spread(&spread)),
        None => "–".to_owned(),
    };
    let ratio = |number| match case.ratio(rival.name, base, number) {
        Some(_) if rival.name == base => "1".to_owned(),
        Some(ratio) => format!("{} ({})", units::ratio(ratio.median), interval(&ratio)),
        None => String::new(),
    };
    let figures = case.metrics.iter().enumerate().map(figure);
    let cells = figures.chain((0..case.compared).map(ratio));
    [rival.name.to_owned()].into_iter().chain(cells).collect()
}

/// For each metric that is compared, a sentence about those that cannot be told from the base: how
/// much they can differ at most.
fn ties(case: &Case, base: &str) -> Vec<String> {
    let of = |(number, metric): (usize, &Metric)| {
        let tie = |rival: &Series| {
            let ratio = case.ratio(rival.name, base, number)?;
            let most = difference_at_most(&ratio)?;
            Some(format!("{} for {}", at_most(most), rival.name))
        };
        let others = case.rivals.iter().filter(|rival| rival.name != base);
        let ties: Vec<_> = others.filter_map(tie).collect();
        (!ties.is_empty()).then(|| {
            let (metric, ties) = (metric.name, ties.join(", "));
            format!("{metric}: no difference from {base} was seen; at 95 % it is at most {ties}")
        })
    };
    case.metrics[..case.compared].iter().enumerate().filter_map(of).collect()
}

/// A difference as a share, in words.
fn at_most(difference: f64) -> String {
    if difference <= 1.0 {
        format!("{} %", units::ratio(100.0 * difference))
    } else {
        format!("a factor of {}", units::figures(1.0 + difference))
    }
}

/// Half of what lies between the quartiles, as a share of the median.
pub(super) fn half_spread(&Spread { median, low, high }: &Spread) -> String {
    if median == 0.0 {
        return "–".to_owned();
    }
    let percent = 50.0 * (high - low) / median;
    if percent < 999.5 { format!("{percent:.0} %") } else { "> 999 %".to_owned() }
}

/// A figure with the unit that keeps it short.
pub(crate) fn number_of(metric: &Metric, value: f64) -> String {
    match metric.unit {
        Unit::Nanoseconds => units::nanoseconds(value),
        Unit::PerSecond => units::per_second(value),
        Unit::Objects => units::count(value.round() as u64),
        Unit::Percent => format!("{} %", units::figures(value)),
        Unit::Bytes if value < 1024.0 => format!("{} B", units::figures(value)),
        Unit::Bytes => units::bytes(value.round() as u64),
    }
}

fn interval(ratio: &Ratio) -> String {
    if ratio.high.is_infinite() {
        return "too few rounds".to_owned();
    }
    format!("{} … {}", units::ratio(ratio.low), units::ratio(ratio.high))
}

/// Prints how the promises were kept.
pub(super) fn print_verdicts(verdicts: &[Verdict], output: &mut Output) {
    if verdicts.is_empty() {
        return;
    }
    output.heading("Targets");
    let row = |verdict: &Verdict| {
        let (word, colour) = verdict_on(verdict.held);
        let row = promised(verdict).into_iter().map(Cell::new);
        row.chain([Cell::new(word).fg(colour)]).collect::<Vec<_>>()
    };
    let header = ["", "measured", "95 % interval", "target", ""];
    output.table(output::table(&header, 1..4, verdicts.iter().map(row)));
}

/// How a promise was kept, in words and in a colour.
fn verdict_on(held: Held) -> (&'static str, Color) {
    match held {
        Held::Met => ("met", Color::Green),
        Held::Missed => ("missed", Color::Red),
        Held::TooClose => ("too close to call", Color::Yellow),
        Held::NoFigure => ("no figure", Color::Yellow),
    }
}

/// What was promised, what was measured of it, how sure that is, and the target.
fn promised(Verdict { promise, metric, base, best_of, ratio, .. }: &Verdict) -> [String; 4] {
    let figure = |value: f64| match base {
        _ if value.is_nan() => "–".to_owned(),
        Some(_) => units::ratio(value),
        None => number_of(metric, value),
    };
    let what = match base {
        Some(base) => {
            let of_others = best_of.map(|count| format!(", the best of {count} rivals"));
            let of_others = of_others.unwrap_or_default();
            // In two lines: some names are long, and the table has four more columns.
            format!("{}, {}:\n{} / {base}{of_others}", promise.case, metric.name, promise.rival)
        }
        None => format!("{}, {}: {}", promise.case, metric.name, promise.rival),
    };
    let interval = match base {
        None if ratio.high.is_finite() => format!("{} … {}", figure(ratio.low), figure(ratio.high)),
        _ => interval(ratio),
    };
    let bound = |bound: f64| match promise.against {
        Against::Nothing => number_of(metric, bound),
        // Of a ratio, also where there is none. Bounds are round numbers; printed as written.
        _ => bound.to_string(),
    };
    let target = match promise.bound {
        Bound::AtMost(most) => format!("at most {}", bound(most)),
        Bound::AtLeast(least) => format!("at least {}", bound(least)),
    };
    let or = promise.or_at_most.map(|most| format!(", or {}", number_of(metric, most)));
    [what, figure(ratio.median), interval, target + &or.unwrap_or_default()]
}

/// The version of the JSON; a reader of another one must not guess.
pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/bench", 3);

/// Puts the document together that `--json` writes.
pub(super) fn document(
    bench: &'static str,
    base: &'static str,
    options: &Options,
    cases: &[Case],
    verdicts: &[Verdict],
) -> Value {
    json!({
        "bench": bench,
        "seed": options.seed,
        "quick": options.quick,
        "base": base,
        "per_cpu_path": per_cpu_path(),
        "machine": Machine::detect(),
        "run": rounds::verdict(cases).as_ref().map(run_out),
        "cases": cases.iter().map(|case| case_out(case, base)).collect::<Vec<_>>(),
        "targets": verdicts.iter().map(target).collect::<Vec<_>>(),
    })
}

fn case_out(case: &Case, base: &str) -> Value {
    let rival = |rival: &Series| {
        let metrics = (0..case.metrics.len()).map(|number| metric(case, rival, number, base));
        json!({ "name": rival.name, "ours": rival.ours, "metrics": metrics.collect::<Vec<_>>() })
    };
    json!({
        "id": case.id,
        "title": case.title,
        "notes": case.notes,
        "rivals": case.rivals.iter().map(rival).collect::<Vec<_>>(),
    })
}

/// One metric of one rival, with the value of every round, so that others can compute on.
fn metric(case: &Case, rival: &Series, number: usize, base: &str) -> Value {
    let metric = &case.metrics[number];
    let ratio = case.ratio(rival.name, base, number);
    let difference = ratio.filter(|_| rival.name != base).as_ref().and_then(difference_at_most);
    json!({
        "name": metric.name,
        "unit": unit_of(metric),
        "spread": rival.spread(number),
        "ratio_to_base": ratio,
        "difference_at_most_percent": difference.map(|share| 100.0 * share),
        "missing": rival.missing.as_ref().map(ToString::to_string),
        "rounds": rival.values[number],
    })
}

fn target(Verdict { promise, metric, base, best_of, ratio, held }: &Verdict) -> Value {
    let (at_most, at_least) = match promise.bound {
        Bound::AtMost(bound) => (Some(bound), None),
        Bound::AtLeast(bound) => (None, Some(bound)),
    };
    json!({
        "case": promise.case,
        "metric": metric.name,
        "rival": promise.rival,
        "base": base,
        "best_of": best_of,
        "at_most": at_most,
        "at_least": at_least,
        "or_figure_at_most": promise.or_at_most,
        "stands_on": promise.measured,
        "ratio": ratio,
        "verdict": verdict_on(*held).0,
    })
}

#[cfg(test)]
mod tests {
    use ::bench::slices::Missing;
    use ::bench::suites::promises::Promise;

    use super::*;

    #[test]
    fn numbers_carry_the_unit_that_keeps_them_short() {
        let of = |unit, value| number_of(&Metric { name: "", unit }, value);
        assert_eq!(of(Unit::Nanoseconds, 0.55), "0.55 ns");
        assert_eq!(of(Unit::PerSecond, 12_345_678.0), "12.3 M/s");
        assert_eq!(of(Unit::PerSecond, 62.5), "62.5 /s");
        assert_eq!(of(Unit::Objects, 82_000.0), "82,000");
        assert_eq!(of(Unit::Bytes, 16.25), "16.2 B");
        assert_eq!(of(Unit::Bytes, 1_048_576.0), "1 MiB");
    }

    #[test]
    fn a_spread_without_end_stays_short() {
        let of = |median, low, high| half_spread(&Spread { median, low, high });
        assert_eq!(of(10.0, 9.0, 11.0), "10 %");
        assert_eq!(of(5.0, 5.0, 10_000.0), "> 999 %");
        assert_eq!(of(0.0, 0.0, 1.0), "–");
    }

    #[test]
    fn a_title_says_how_many_values_each_rival_has() {
        let mut case = three_beside_a_base();
        assert_eq!(how_often(&case), "6 values");
        case.rivals[1].values[0].truncate(5);
        case.rivals[2].values[0].clear();
        assert_eq!(how_often(&case), "5 to 6 values", "a rival without a figure has its reason");
        case.rivals.iter_mut().for_each(|rival| rival.values[0].truncate(1));
        assert_eq!(how_often(&case), "1 value");
    }

    #[test]
    fn a_rival_without_a_figure_is_in_the_table_and_compared_with_none() {
        let mut case = three_beside_a_base();
        for values in &mut case.rivals[1].values {
            values.clear();
        }
        case.rivals[1].missing = Some(Missing::NoTime);
        let cells = row(&case, &case.rivals[1], "a");
        assert_eq!(cells, ["b", "–", "–", ""]);
        assert_eq!(row(&case, &case.rivals[2], "b")[3], "", "nor it with others");
        assert_eq!((intervals(&case, 0).len(), ties(&case, "a").len()), (3, 1));
    }

    const TIMES: &[Metric] = &[
        Metric { name: "time", unit: Unit::Nanoseconds },
        Metric { name: "CPU", unit: Unit::Percent },
    ];

    /// Six rounds of two metrics; `b` ties with `a` in the first and costs twice as much, `c` the
    /// other way round, `d` is all over the place.
    fn three_beside_a_base() -> Case {
        let names = ["a", "b", "c", "d"].map(|name| (name, true));
        let mut case = Case::new("x/y", "y", TIMES, names);
        let base = vec![100.0; 6];
        let near = vec![98.0, 99.0, 100.0, 100.0, 101.0, 101.5];
        let wild = vec![20.0, 90.0, 100.0, 100.0, 150.0, 300.0];
        let columns = [
            [base.clone(), base],
            [near.clone(), vec![200.0; 6]],
            [vec![200.0; 6], near],
            [wild.clone(), wild],
        ];
        for (rival, values) in case.rivals.iter_mut().zip(columns) {
            rival.values = values.into();
        }
        case
    }

    #[test]
    fn ties_are_said_with_the_most_that_they_can_differ() {
        let case = three_beside_a_base();
        assert_eq!(
            ties(&case, "a"),
            ["time: no difference from a was seen; at 95 % it is at most 2.00 % for b, \
              a factor of 3.00 for d"]
        );
        let both = Case { compared: 2, ..case };
        let sentences = ties(&both, "a");
        assert_eq!(sentences.len(), 2);
        assert!(sentences[1].starts_with("CPU: ") && sentences[1].contains("2.00 % for c"));
        assert!(!sentences[1].contains("for b"), "{sentences:?}");
        // Of two rounds nothing is known.
        let mut short = three_beside_a_base();
        short.rivals.iter_mut().flat_map(|rival| &mut rival.values).for_each(|v| v.truncate(2));
        assert_eq!(ties(&short, "a"), [""; 0]);
    }

    #[test]
    fn every_metric_that_is_compared_has_its_ratio_in_the_table() {
        let case = three_beside_a_base();
        assert_eq!(row(&case, &case.rivals[1], "a").len(), 1 + 2 + 1);
        let both = Case { compared: 2, ..case };
        let cells = row(&both, &both.rivals[1], "a");
        assert_eq!(cells[..3], ["b", "100 ns ± 1 %", "200 % ± 0 %"]);
        assert_eq!((cells.len(), &*cells[4]), (1 + 2 + 2, "2.00 (2.00 … 2.00)"));
        assert_eq!(row(&both, &both.rivals[0], "a")[3], "1");
    }

    #[test]
    fn a_target_says_whose_figure_it_is_and_in_what() {
        const METRIC: Metric = Metric { name: "call", unit: Unit::Nanoseconds };
        let promise = Promise {
            case: "call/enqueue",
            metric: "call",
            rival: "quiescence",
            against: Against::Best,
            bound: Bound::AtMost(0.125),
            measured: 0.1,
            or_at_most: Some(25.0),
        };
        let ratio = Ratio { median: 0.5, low: 0.25, high: 0.75 };
        let of = |against, base: Option<&'static str>| {
            let (promise, best_of) = (Promise { against, ..promise }, base.map(|_| 7));
            let verdict =
                Verdict { promise, metric: METRIC, base, best_of, ratio, held: Held::Missed };
            promised(&verdict).join(" | ")
        };
        assert_eq!(
            of(Against::Best, Some("sdd")),
            "call/enqueue, call:\nquiescence / sdd, the best of 7 rivals | 0.50 | 0.25 … 0.75 | \
             at most 0.125, or 25.0 ns"
        );
        assert_eq!(
            of(Against::Nothing, None),
            "call/enqueue, call: quiescence | 0.50 ns | 0.25 ns … 0.75 ns | \
             at most 0.12 ns, or 25.0 ns"
        );
        // The bound of a ratio was printed as nanoseconds where there was no rival to compare with.
        for against in [Against::Best, Against::Rival("sdd")] {
            assert_eq!(
                of(against, None),
                "call/enqueue, call: quiescence | 0.50 ns | 0.25 ns … 0.75 ns | \
                 at most 0.125, or 25.0 ns"
            );
        }
    }

    fn written(cases: &[Case]) -> Value {
        document("read", "a", &Options::default(), cases, &[])
    }

    #[test]
    fn the_document_says_what_a_tie_is_worth() {
        let json = written(&[three_beside_a_base()]);
        let most = |rival: usize, metric: usize| {
            let metric = &json["cases"][0]["rivals"][rival]["metrics"][metric];
            metric["difference_at_most_percent"].as_f64().map(f64::round)
        };
        assert_eq!(
            [most(0, 0), most(1, 0), most(1, 1), most(2, 1)],
            [None, Some(2.0), None, Some(2.0)]
        );
        assert_eq!(most(3, 0), Some(200.0));
    }

    #[test]
    fn the_document_holds_every_round_and_null_for_what_is_unknown() {
        const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];
        let mut case = Case::new("read/x", "x", METRICS, [("a", false), ("b", false)]);
        for (rival, values) in case.rivals.iter_mut().zip([[1.0, 2.0], [2.0, 4.0]]) {
            rival.values = vec![values.into()];
        }
        let json = written(&[case]);
        assert_eq!(json["base"], "a");
        assert_eq!(json["per_cpu_path"], per_cpu_path());
        let metric = &json["cases"][0]["rivals"][1]["metrics"][0];
        assert_eq!(metric["rounds"], json!([2.0, 4.0]));
        assert_eq!(metric["ratio_to_base"]["median"], 2.0);
        assert!(metric["ratio_to_base"]["high"].is_null(), "two rounds tell nothing");
    }
}
