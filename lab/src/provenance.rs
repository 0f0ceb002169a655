//! Where a report comes from: when, on what kind of machine, by which command and version.
//!
//! Every JSON document and every page carries it, so that a figure found a year later can be
//! measured again. The name of the machine is left out unless the user asks for it: reports are
//! published.

use std::time::SystemTime;

use bench::slices::own_cpus;
use rustix::system::uname;
use serde::Serialize;

use crate::machine;

/// The version of the package, and the commit that it was built from.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("RCU_COMMIT"), ")");

/// The heading above it.
pub(crate) const ORIGIN: &str = "Where this comes from";

/// The origin of a report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Provenance {
    /// When the command began, in UTC, as RFC 3339 writes it.
    pub(crate) date: String,
    /// What kind of machine: virtual or not, and the CPUs that the process may use.
    pub(crate) host_class: String,
    /// The name of the machine, if the user asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host_name: Option<String>,
    /// The CPU's name for itself, or "unknown".
    pub(crate) cpu: String,
    /// The arguments as typed, behind the command's own name.
    pub(crate) command_line: String,
    /// Version of the package.
    pub(crate) version: &'static str,
    /// The commit that the command was built from, or "unknown".
    pub(crate) commit: &'static str,
}

impl Provenance {
    /// The origin of what this process reports; with the name of the machine, if that is wanted.
    pub(crate) fn of_this_run(has_host_name: bool) -> Provenance {
        let (cpu, is_virtual) = machine::cpu_and_hypervisor();
        let arguments = std::env::args_os().skip(1);
        let arguments: Vec<String> =
            arguments.map(|each| quoted(&each.to_string_lossy())).collect();
        Provenance {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            host_class: host_class(is_virtual, own_cpus().len()),
            host_name: has_host_name.then(|| uname().nodename().to_string_lossy().into_owned()),
            cpu: cpu.unwrap_or_else(|| "unknown".to_owned()),
            command_line: [&["rcu".to_owned()], arguments.as_slice()].concat().join(" "),
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("RCU_COMMIT"),
        }
    }

    /// What there is to say, as pairs of a name and its value.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("date", self.date.clone()), ("host class", self.host_class.clone())];
        rows.extend(self.host_name.clone().map(|name| ("host name", name)));
        rows.extend([
            ("CPU", self.cpu.clone()),
            ("command", self.command_line.clone()),
            ("version", format!("rcu {}, commit {}", self.version, self.commit)),
        ]);
        rows
    }
}

fn host_class(is_virtual: Option<bool>, cpus: usize) -> String {
    let kind = match is_virtual {
        Some(true) => "virtual machine",
        Some(false) => "bare metal",
        None => "unknown kind of machine",
    };
    format!("{kind}, {cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" })
}

/// An argument as a shell would have to be given it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./,:+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_class_has_no_name_of_the_machine() {
        assert_eq!(host_class(Some(true), 2), "virtual machine, 2 CPUs");
        assert_eq!(host_class(Some(false), 1), "bare metal, 1 CPU");
        assert!(Provenance::of_this_run(false).host_name.is_none());
        assert!(Provenance::of_this_run(true).rows().iter().any(|(name, _)| *name == "host name"));
    }

    #[test]
    fn the_command_line_can_be_pasted() {
        assert_eq!(quoted("--reads=95"), "--reads=95");
        assert_eq!(quoted("my keys"), "'my keys'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
