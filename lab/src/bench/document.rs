//! The JSON of `rcu bench`: every round of every metric, ratios and verdicts.

use ::bench::statistics::difference_at_most;
use ::bench::suites::Options;
use ::bench::suites::promises::{Bound, Verdict};
use ::bench::suites::rounds::{self, Case, Series};
use serde::Serialize;
use serde_json::json;

use super::per_cpu_path;
use super::report::{unit_of, verdict_on};
use crate::json;
use crate::machine::Machine;
use crate::output::SchemaId;

/// The version of the JSON; a reader of another one must not guess.
pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/bench", 3);

/// Puts the document together that `--json` writes.
pub(super) fn document(
    bench: &'static str,
    base: &'static str,
    options: &Options,
    cases: &[Case],
    verdicts: &[Verdict],
    interrupted: bool,
) -> impl Serialize {
    json!({
        "bench": bench,
        "seed": options.seed,
        "quick": options.quick,
        "base": base,
        "per_cpu_path": per_cpu_path(),
        "interrupted": interrupted,
        "machine": Machine::detect(),
        "run": rounds::verdict(cases).as_ref().map(json::run),
        "cases": cases.iter().map(|case| case_out(case, base)).collect::<Vec<_>>(),
        "targets": verdicts.iter().map(target).collect::<Vec<_>>(),
    })
}

fn case_out(case: &Case, base: &str) -> impl Serialize {
    let rival = |rival: &Series| {
        let metrics = (0..case.metrics.len()).map(|number| metric(case, rival, number, base));
        json!({ "name": rival.name, "ours": rival.ours, "metrics": metrics.collect::<Vec<_>>(), })
    };
    json!({
        "id": case.id.clone(),
        "title": case.title.clone(),
        "notes": case.notes.clone(),
        "rivals": case.rivals.iter().map(rival).collect::<Vec<_>>(),
    })
}

/// One metric of one rival, with the value of every round, so that others can compute on.
fn metric(case: &Case, rival: &Series, number: usize, base: &str) -> impl Serialize + use<> {
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
        "rounds": rival.values[number].clone(),
    })
}

fn target(Verdict { promise, metric, base, best_of, ratio, held }: &Verdict) -> impl Serialize {
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
        "ratio": *ratio,
        "verdict": verdict_on(*held).0,
    })
}

#[cfg(test)]
mod tests {
    use ::bench::suites::rounds::{Metric, Unit};

    use super::super::report::tests::three_beside_a_base;
    use super::*;

    fn written(cases: &[Case]) -> serde_json::Value {
        let options = Options::default();
        let document = document("read", "a", &options, cases, &[], false);
        serde_json::to_value(document).unwrap()
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
        assert_eq!(metric["rounds"], serde_json::json!([2.0, 4.0]));
        assert_eq!(metric["ratio_to_base"]["median"], 2.0);
        assert!(metric["ratio_to_base"]["high"].is_null(), "two rounds tell nothing");
    }
}
