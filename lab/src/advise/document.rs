//! The report as JSON. The schema is described in `docs/JSON.md`; the thread that changes a field
//! here describes it there, and raises the version when a reader of the old one would go wrong.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::rank::{By, Ranking};
use super::report::Report;
use super::simplicity::TABLE;
use crate::costs::CostsOut;
use crate::json::RunOut;
use crate::output::SchemaId;

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/advise", 2);

/// The table that fits the caches.
#[derive(Debug, Serialize)]
struct Small<'a> {
    #[serde(flatten)]
    table: &'a Ranking,
    recommended: Option<&'static str>,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let advice = self.advice();
        let (first, last) = (advice.first(), advice.last());
        let choice = last.map(|one| one.choice.design);
        let table = self.tables.last();
        let small = self.tables.split_last().and_then(|(_, others)| others.first());
        let small = small
            .map(|table| Small { table, recommended: first.map(|one| one.choice.design.name) });
        let equal = last.map_or(&[][..], |one| &one.set);
        let equal: Vec<&str> = equal.iter().map(|place| place.design.name).collect();
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("rcu", env!("CARGO_PKG_VERSION"))?;
        object.serialize_entry("seed", &self.seed)?;
        object.serialize_entry("interrupted", &self.interrupted)?;
        object.serialize_entry("cut_short", &self.cut_short)?;
        object.serialize_entry("run", &RunOut(self.run.clone()))?;
        object.serialize_entry("too_noisy", &self.too_noisy())?;
        object.serialize_entry("checksum_errors", &self.checksum_errors())?;
        object.serialize_entry("machine", &self.machine)?;
        object.serialize_entry("costs", &self.costs.as_ref().map(CostsOut::from))?;
        object.serialize_entry("keys", &self.keys)?;
        object.serialize_entry("workload", &self.workload)?;
        object.serialize_entry("ranked_by", &table.map_or(By::Wall, |table| table.by))?;
        object.serialize_entry("designs", self.places())?;
        object.serialize_entry("unranked", table.map_or(&[][..], |table| &table.unranked))?;
        object.serialize_entry("small", &small)?;
        object.serialize_entry("equal", &equal)?;
        let lost = last.and_then(|one| one.lost_percent_at_most);
        object.serialize_entry("lost_percent_at_most", &lost)?;
        object.serialize_entry("sweeps", &self.sweeps)?;
        object.serialize_entry("flips", &self.flips())?;
        object.serialize_entry("simplicity", &TABLE)?;
        object.serialize_entry("recommended", &choice.map(|design| design.name))?;
        object.serialize_entry("program", &choice.map(|design| design.program))?;
        object.serialize_entry("recommendation", &self.recommendation())?;
        object.serialize_entry("decision", &self.decision())?;
        object.serialize_entry("disclosures", &self.disclosures())?;
        object.end()
    }
}
