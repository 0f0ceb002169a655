//! The JSON of `rcu bench`: every round of every metric, ratios and verdicts.

use ::bench::statistics::difference_at_most;
use ::bench::suites::promises::{Bound, Verdict};
use ::bench::suites::rounds::{self, Case};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::report::{unit_of, verdict_on};
use crate::json::{Middle, RunOut};
use crate::machine::Machine;
use crate::output::SchemaId;

/// The version of the JSON; a reader of another one must not guess.
pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/bench", 3);

/// What was run.
#[derive(Debug, Serialize)]
pub(super) struct Header {
    pub(super) bench: &'static str,
    pub(super) seed: u64,
    pub(super) quick: bool,
    pub(super) base: &'static str,
    /// `restartable` or `portable`.
    pub(super) per_cpu_path: &'static str,
    pub(super) interrupted: bool,
}

/// The document that `--json` writes.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    #[serde(flatten)]
    header: &'a Header,
    machine: Machine,
    run: Option<RunOut>,
    cases: Vec<CaseOut>,
    targets: Vec<TargetOut<'a>>,
}

#[derive(Debug, Serialize)]
struct CaseOut {
    id: String,
    title: String,
    notes: Vec<String>,
    rivals: Vec<RivalOut>,
}

#[derive(Debug, Serialize)]
struct RivalOut {
    name: &'static str,
    ours: bool,
    metrics: Vec<MetricOut>,
}

/// One metric of one rival, with the value of every round, so that others can compute on.
#[derive(Debug, Serialize)]
struct MetricOut {
    name: &'static str,
    unit: &'static str,
    spread: Option<Middle>,
    ratio_to_base: Option<Middle>,
    difference_at_most_percent: Option<f64>,
    missing: Option<String>,
    rounds: Vec<f64>,
}

#[derive(Debug)]
struct TargetOut<'a>(&'a Verdict);

impl Serialize for TargetOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Verdict { promise, metric, base, ratio, held } = self.0;
        let (at_most, at_least) = match promise.bound {
            Bound::AtMost(bound) => (Some(bound), None),
            Bound::AtLeast(bound) => (None, Some(bound)),
        };
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("case", promise.case)?;
        object.serialize_entry("metric", metric.name)?;
        object.serialize_entry("rival", promise.rival)?;
        object.serialize_entry("base", base)?;
        object.serialize_entry("at_most", &at_most)?;
        object.serialize_entry("at_least", &at_least)?;
        object.serialize_entry("or_figure_at_most", &promise.or_at_most)?;
        object.serialize_entry("stands_on", &promise.measured)?;
        object.serialize_entry("ratio", &Middle::from(*ratio))?;
        object.serialize_entry("verdict", verdict_on(*held).0)?;
        object.end()
    }
}

/// Puts the document together.
pub(super) fn document<'a>(
    header: &'a Header,
    cases: &[Case],
    verdicts: &'a [Verdict],
) -> Document<'a> {
    Document {
        header,
        machine: Machine::detect(),
        run: rounds::verdict(cases).map(RunOut),
        cases: cases.iter().map(|case| case_out(case, header.base)).collect(),
        targets: verdicts.iter().map(TargetOut).collect(),
    }
}

fn case_out(case: &Case, base: &str) -> CaseOut {
    let rivals = case.rivals.iter().map(|rival| {
        let metrics = case.metrics.iter().enumerate().map(|(number, metric)| {
            let ratio = case.ratio(rival.name, base, number);
            let difference =
                ratio.filter(|_| rival.name != base).as_ref().and_then(difference_at_most);
            MetricOut {
                name: metric.name,
                unit: unit_of(metric),
                spread: rival.spread(number).map(Middle::from),
                missing: rival.missing.as_ref().map(ToString::to_string),
                ratio_to_base: ratio.map(Middle::from),
                difference_at_most_percent: difference.map(|share| 100.0 * share),
                rounds: rival.values[number].clone(),
            }
        });
        RivalOut { name: rival.name, ours: rival.ours, metrics: metrics.collect() }
    });
    CaseOut {
        id: case.id.clone().into_owned(),
        title: case.title.clone().into_owned(),
        notes: case.notes.clone(),
        rivals: rivals.collect(),
    }
}

#[cfg(test)]
mod tests {
    use ::bench::suites::rounds::{Metric, Unit};

    use super::super::report::tests::three_beside_a_base;
    use super::*;

    #[test]
    fn the_document_says_what_a_tie_is_worth() {
        let header = Header {
            bench: "engines",
            seed: 1,
            quick: true,
            base: "a",
            per_cpu_path: "portable",
            interrupted: false,
        };
        let cases = [three_beside_a_base()];
        let json = serde_json::to_value(document(&header, &cases, &[])).unwrap();
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
        let header = Header {
            bench: "read",
            seed: 1,
            quick: true,
            base: "a",
            per_cpu_path: "portable",
            interrupted: false,
        };
        let json = serde_json::to_value(document(&header, &[case], &[])).unwrap();
        assert_eq!(json["base"], "a");
        assert_eq!(json["per_cpu_path"], "portable");
        let metric = &json["cases"][0]["rivals"][1]["metrics"][0];
        assert_eq!(metric["rounds"], serde_json::json!([2.0, 4.0]));
        assert_eq!(metric["ratio_to_base"]["median"], 2.0);
        assert!(metric["ratio_to_base"]["high"].is_null(), "two rounds tell nothing");
    }
}
