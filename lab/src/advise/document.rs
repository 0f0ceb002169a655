//! The report as JSON. Its schema is `lab/schema/advise.schema.json`: if you change a field here,
//! describe it there, and raise the version if a reader of the old one would go wrong.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::rank::By;
use super::report::Report;
use super::simplicity::TABLE;
use super::sweep::Sweep;
use super::{remarks, tree};
use crate::costs::table_out;
use crate::json;
use crate::output::SchemaId;

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/advise", 2);

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let advice = self.advice();
        let (first, last) = (advice.first(), advice.last());
        let choice = last.map(|one| one.choice.design);
        let table = self.tables.last();
        let small = self.tables.split_last().and_then(|(_, others)| others.first());
        let small = small.map(|table| {
            json!({
                "keys": table.keys,
                "ranked_by": table.by,
                "designs": &table.places,
                "unranked": &table.unranked,
                "recommended": first.map(|one| one.choice.design.name),
            })
        });
        let equal = last.map_or(&[][..], |one| &one.set);
        let equal: Vec<&str> = equal.iter().map(|place| place.design.name).collect();
        json!({
            "rcu": env!("CARGO_PKG_VERSION"),
            "seed": self.seed,
            "interrupted": self.interrupted,
            "cut_short": self.cut_short,
            "run": json::run(&self.run),
            "too_noisy": self.too_noisy(),
            "checksum_errors": self.checksum_errors(),
            "machine": &self.machine,
            "costs": self.costs.as_ref().map(table_out),
            "keys": &self.keys,
            "workload": &self.workload,
            "ranked_by": table.map_or(By::Wall, |table| table.by),
            "designs": self.places(),
            "unranked": table.map_or(&[][..], |table| &table.unranked),
            "small": small,
            "equal": equal,
            "lost_percent_at_most": last.and_then(|one| one.lost_percent_at_most),
            "sweeps": &self.sweeps,
            "curves": &self.curves,
            "flips": self.sweeps.iter().flat_map(Sweep::flips).collect::<Vec<_>>(),
            "simplicity": &*TABLE,
            "recommended": choice.map(|design| design.name),
            "program": choice.map(|design| design.program),
            "recommendation": self.recommendation(),
            "decision": tree::path(&self.workload),
            "leaves": &self.leaves,
            "disclosures": remarks::disclosures(&self.workload, self.places()),
        })
        .serialize(serializer)
    }
}
