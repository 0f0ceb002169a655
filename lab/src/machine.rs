//! What this machine is: everything that moves the cost of synchronisation.
//!
//! All of it is optional. Containers hide `/sys`, kernels differ, and a report that says
//! "unknown" is better than a command that stops.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, iter};

use bench::slices::own_cpus;
use bench::suites::cache::Geometry;
use rustix::thread::{MembarrierCommand, membarrier_query};
use serde::Serialize;

use crate::output::Output;

/// Where the kernel describes the caches of the first CPU.
const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";

/// One cache that the first CPU sees.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Cache {
    /// 1 for the nearest.
    pub(crate) level: u32,
    /// `Data` or `Unified`; instruction caches are left out.
    pub(crate) kind: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Lines of one set.
    pub(crate) ways: Option<u64>,
    /// Bytes of a line.
    pub(crate) line_bytes: Option<u64>,
    /// The CPUs that share it, as the kernel writes lists (`0-3,8`).
    pub(crate) shared_by: String,
}

/// What could be found out about the machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// The CPU's name for itself.
    pub(crate) model: Option<String>,
    /// CPUs that this process may use, by number.
    pub(crate) cpus: Vec<usize>,
    /// CPUs that are online, as the kernel writes lists.
    pub(crate) cpus_online: Option<String>,
    /// Data and unified caches of the first CPU, nearest first.
    pub(crate) caches: Vec<Cache>,
    /// Memory that the kernel says is available, or its control groups' limit if that is less.
    pub(crate) memory_available_bytes: Option<u64>,
    /// Release of the kernel.
    pub(crate) kernel: Option<String>,
    /// The commands of `membarrier` that the kernel offers; empty when it offers none.
    pub(crate) membarrier: Vec<&'static str>,
    /// Which fences the library chose.
    pub(crate) fences: String,
    /// The size of the kernel's restartable-sequence area, from the auxiliary vector.
    pub(crate) rseq_bytes: Option<u64>,
    /// The kernel's clock source.
    pub(crate) clock: Option<String>,
    /// The smallest step that the clock was seen to make.
    pub(crate) clock_step_ns: u64,
    /// Whether this is a guest of a hypervisor.
    pub(crate) virtual_machine: Option<bool>,
}

impl Machine {
    /// Looks around: reads `/proc` and `/sys`, and has the library choose its fences.
    pub(crate) fn detect() -> Machine {
        let (model, virtual_machine) = cpu_and_hypervisor();
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let memory = field(&read("/proc/meminfo"), "MemAvailable").and_then(|text| size(&text));
        let limit = groups_limit(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
        Machine {
            model,
            cpus: own_cpus(),
            cpus_online: line("/sys/devices/system/cpu/online"),
            caches: caches(Path::new(CACHES)),
            memory_available_bytes: memory.into_iter().chain(limit).min(),
            kernel: line("/proc/sys/kernel/osrelease"),
            membarrier: membarrier_commands(),
            fences: format!("{:?}", quiescence::tuning::fences()).to_lowercase(),
            rseq_bytes: fs::read("/proc/self/auxv").ok().and_then(|bytes| rseq_bytes(&bytes)),
            clock: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            clock_step_ns: clock_step().as_nanos() as u64,
            virtual_machine,
        }
    }

    /// Prints the machine, a line for each thing that matters.
    pub(crate) fn print(&self, output: &mut Output) {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let guest = if self.virtual_machine == Some(true) { ", virtual machine" } else { "" };
        let cache = |cache: &Cache| {
            let side = if cache.kind == "Data" { "d" } else { "" };
            format!("L{}{side} {}", cache.level, bench::units::bytes(cache.bytes))
        };
        let caches: Vec<String> = self.caches.iter().map(cache).collect();
        let caches = Some(caches.join(", ")).filter(|caches| !caches.is_empty());
        let rseq = self.rseq_bytes.map(|bytes| format!("yes, {bytes} bytes of features"));
        let membarrier =
            if self.membarrier.is_empty() { "none".to_owned() } else { self.membarrier.join(", ") };
        output.heading("Machine");
        output.entries([
            ("CPU", format!("{}{guest}", known(&self.model))),
            (
                "CPUs",
                format!("{} usable here (online: {})", self.cpus.len(), known(&self.cpus_online)),
            ),
            ("caches", known(&caches)),
            ("kernel", known(&self.kernel)),
            ("membarrier", membarrier),
            ("fences", format!("{} (chosen by the library)", self.fences)),
            ("rseq", known(&rseq)),
            ("clock", format!("{}, steps of {} ns", known(&self.clock), self.clock_step_ns)),
        ]);
    }
}

/// The CPU's model, and whether there is a hypervisor below. Reads a file, no more: every command
/// calls it.
pub(crate) fn cpu_and_hypervisor() -> (Option<String>, Option<bool>) {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = field(&text, "flags");
    let is_virtual = flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    (field(&text, "model name"), is_virtual)
}

/// The first line of a file, trimmed; nothing when there is none.
fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let first = text.lines().next()?.trim();
    (!first.is_empty()).then(|| first.to_owned())
}

/// The value after `name :` in the style of `/proc/cpuinfo` and `/proc/meminfo`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The least limit of memory of the control group that these lines name, and of those around it,
/// in version 2 of control groups. In a container, `root` is its own group, which has no name.
fn groups_limit(lines: &str, root: &Path) -> Option<u64> {
    let group = root.join(lines.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let limit = |group: &Path| size(&line(group.join("memory.max").to_str()?)?); // "max" is none
    group.ancestors().filter_map(limit).min()
}

/// The caches under `root`, without those for instructions, nearest first.
fn caches(root: &Path) -> Vec<Cache> {
    let cache = |entry: fs::DirEntry| {
        let read = |name: &str| line(entry.path().join(name).to_str()?);
        let number = |name| read(name)?.parse().ok().filter(|&number| number > 0);
        Some(Cache {
            level: read("level")?.parse().ok()?,
            bytes: size(&read("size")?)?,
            ways: number("ways_of_associativity"),
            line_bytes: number("coherency_line_size"),
            shared_by: read("shared_cpu_list").unwrap_or_default(),
            kind: read("type").filter(|kind| kind != "Instruction")?,
        })
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut caches: Vec<Cache> = entries.filter_map(cache).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// These caches as `rcu bench cache` must know them; what they do not say is the usual. A first
/// level whose sets are not known keeps its size, and has as many sets as usual.
pub(crate) fn geometry(caches: &[Cache]) -> Geometry {
    let usual = Geometry::USUAL;
    let of_level = |level| caches.iter().find(|cache| cache.level == level && cache.bytes > 0);
    let (first, second) = (of_level(1), of_level(2));
    let bytes = first.map_or(usual.first.bytes, |cache| cache.bytes);
    let lines_and_ways = first.and_then(|cache| {
        let ways = cache.ways?;
        let line_bytes = cache.line_bytes.filter(|line| line.is_power_of_two() && *line >= 16)?;
        bytes.is_multiple_of(ways * line_bytes).then_some((line_bytes, ways))
    });
    let usual_ways = (bytes * usual.first.ways / usual.first.bytes).max(1);
    let (line_bytes, ways) = lines_and_ways.unwrap_or((usual.line_bytes, usual_ways));
    Geometry {
        line_bytes,
        first: bench::suites::cache::Cache { bytes, ways },
        second_bytes: second.map_or(usual.second_bytes, |cache| cache.bytes),
        last_bytes: caches.iter().map(|cache| cache.bytes).max().unwrap_or(usual.last_bytes),
        is_known: lines_and_ways.is_some() && second.is_some(),
    }
}

/// `48K`, `2M` or `1234 kB` in bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" | " kB" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The membarrier commands that matter here and that the kernel offers.
fn membarrier_commands() -> Vec<&'static str> {
    let query = membarrier_query();
    [
        (MembarrierCommand::PrivateExpedited, "private expedited"),
        (MembarrierCommand::PrivateExpeditedRseq, "private expedited rseq"),
        (MembarrierCommand::GlobalExpedited, "global expedited"),
        (MembarrierCommand::Global, "global"),
    ]
    .into_iter()
    .filter(|&(command, _)| query.contains_command(command))
    .map(|(_, name)| name)
    .collect()
}

/// `AT_RSEQ_FEATURE_SIZE` of the auxiliary vector: pairs of machine words, type and value.
fn rseq_bytes(auxv: &[u8]) -> Option<u64> {
    const AT_RSEQ_FEATURE_SIZE: usize = 27;
    let (words, _) = auxv.as_chunks();
    let mut pairs = words.as_chunks().0.iter().map(|pair| pair.map(usize::from_ne_bytes));
    pairs.find_map(|[kind, value]| (kind == AT_RSEQ_FEATURE_SIZE).then_some(value as u64))
}

/// The smallest step the clock makes between two readings.
fn clock_step() -> Duration {
    let step = |_| {
        let start = Instant::now();
        iter::repeat_with(|| start.elapsed()).find(|step| !step.is_zero())
    };
    (0..1000).filter_map(step).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = ["48K", "260M", "512", "2 kB", "12X", "2 X", ""].map(size);
        let known = [48 << 10, 260 << 20, 512, 2048].map(Some);
        assert_eq!(sizes[..], [&known[..], &[None; 3]].concat());
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 207\nmodel name\t: A CPU\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A CPU"));
        assert_eq!(field(text, "name"), None);
    }

    #[test]
    fn the_auxiliary_vector_is_read_by_pairs() {
        let words = [3_usize, 27, 27, 32, 0, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(rseq_bytes(&bytes), Some(32));
        assert_eq!(rseq_bytes(&bytes[..16]), None);
        assert_eq!(rseq_bytes(&[]), None);
    }

    /// Only what the whole machine has was asked for.
    #[test]
    fn the_limit_of_control_groups_is_found() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let said = || groups_limit("1:cpu:/other\n0::/outer/inner\n", root.path());
        assert_eq!(said(), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("outer/memory.max"), "1073741824\n").unwrap();
        assert_eq!(said(), Some(1 << 30));
    }

    #[test]
    fn a_machine_without_cache_files_has_unknown_caches() {
        assert!(caches(Path::new("/nowhere")).is_empty());
        assert_eq!(geometry(&[]), Geometry::USUAL);
    }

    #[test]
    fn the_geometry_is_that_of_the_files() {
        let directory = tempfile::tempdir().unwrap();
        for (index, files) in [
            ("index0", ["1", "Data", "48K", "12", "64"]),
            ("index1", ["1", "Instruction", "32K", "8", "64"]),
            ("index2", ["2", "Unified", "2M", "16", "64"]),
        ] {
            let cache = directory.path().join(index);
            fs::create_dir(&cache).unwrap();
            let names = ["level", "type", "size", "ways_of_associativity", "coherency_line_size"];
            for (name, text) in names.into_iter().zip(files) {
                fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        }
        let found = caches(directory.path());
        let known = geometry(&found);
        assert!(known.is_known);
        assert_eq!((known.line_bytes, known.first.bytes, known.first.ways), (64, 48 << 10, 12));
        assert_eq!((known.second_bytes, known.last_bytes), (2 << 20, 2 << 20));
        // A virtual machine may say that there are 0 bytes.
        let none = Cache { bytes: 0, ..found[0].clone() };
        let usual = geometry(&[none, found[1].clone()]);
        assert_eq!((usual.is_known, usual.first), (false, Geometry::USUAL.first));
        // A fully associative cache, lines that are not said, and ways that do not fit.
        for odd in [
            Cache { ways: None, ..found[0].clone() },
            Cache { line_bytes: None, ..found[0].clone() },
            Cache { ways: Some(7), ..found[0].clone() },
        ] {
            let sized = geometry(&[odd, found[1].clone()]);
            assert_eq!((sized.is_known, sized.line_bytes), (false, 64));
            assert_eq!((sized.first.bytes, sized.first.ways), (48 << 10, 12));
        }
    }
}
