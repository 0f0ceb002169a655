//! What a process says of itself: the replies of [`super`]. Described in `docs/JSON.md`.

use std::time::{SystemTime, UNIX_EPOCH};

use super::json::Json;
use crate::event::statistics::Statistics;
use crate::os::fence::{self, Fences};
use crate::os::{clock, thread_state};
use crate::reclaim::domain_state::{self, DomainState};
use crate::report::inspect::{LongestReader, Look};

/// The schema of the replies; the number grows when a reader of the old ones would go wrong.
const SCHEMA: &str = "quiescence-stats/2";
/// Domains that are told of. A process may have any number of them, an answer may not.
const DOMAINS_MAX: usize = 256;

/// The statistics of all domains.
pub(super) fn of_process() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (domains, total) = domain_state::list(DOMAINS_MAX);
    Json::document(|json| {
        json.key("schema").string(SCHEMA);
        json.field("pid", std::process::id().into());
        json.key("program").string(&program());
        json.field("time_ns", u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX));
        json.field("monotonic_ns", clock::monotonic_ns());
        json.key("fences").string(match fence::chosen() {
            Fences::Membarrier => "membarrier",
            Fences::Portable => "portable",
        });
        json.field("domains_total", total as u64);
        json.key("domains").array(|json| {
            // A handle that has become the last one runs what waits in its domain; as on the
            // worker.
            for domain in domains {
                json.object(|json| of_domain(json, &domain));
            }
        });
    })
}

/// What was wrong with a request.
pub(super) fn of_mistake(mistake: &str) -> String {
    Json::document(|json| {
        json.key("schema").string(SCHEMA);
        json.key("error").string(mistake);
    })
}

/// The name of the program's file.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let path = path.to_string_lossy();
    path.rsplit_once('/').map_or(&*path, |(_, name)| name).to_owned()
}

fn of_domain(json: &mut Json, core: &DomainState) {
    let statistics = Statistics::of(core);
    let Look { engine, in_progress, longest_reader } = core.look();
    let tuning = core.grace_periods.tuning.get();
    json.field("number", core.grace_periods.observers.identity() as u64);
    json.key("name").string(&core.grace_periods.observers.label());
    json.key("engine").string(engine);
    for (key, count) in statistics.counts() {
        json.field(key, count);
    }
    json.field("callbacks_waiting", statistics.callbacks_waiting());
    json.field("objects_max", tuning.objects_max);
    json.field("bytes_max", tuning.bytes_max);
    json.key("latency").array(|json| {
        for (range, count) in statistics.latency.buckets() {
            json.object(|json| {
                json.field("from_ns", range.start);
                json.field("below_ns", range.end);
                json.field("count", count);
            });
        }
    });
    match in_progress {
        None => json.key("in_progress").plain("null"),
        Some(in_progress) => json.key("in_progress").object(|json| {
            json.field("number", in_progress.number);
            json.field("waits_ns", in_progress.waits_ns);
        }),
    }
    match longest_reader {
        None => json.key("longest_reader").plain("null"),
        Some(reader) => json.key("longest_reader").object(|json| of_reader(json, &reader)),
    }
}

fn of_reader(json: &mut Json, reader: &LongestReader) {
    json.key("qsbr").plain(reader.qsbr);
    json.field("thread_id", reader.thread.into());
    let name = thread_state::look_at(reader.thread).name;
    json.key("thread_name").string_or_null(name.as_deref());
    json.key("location")
        .string_or_null(reader.location.map(|location| location.to_string()).as_deref());
    json.field("at_least_ns", reader.at_least_ns);
}
