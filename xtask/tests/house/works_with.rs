//! docs/WORKS_WITH.md has what the commands run, and nothing else: a row for each crate and program
//! of their lists; and programs are measured with the versions whose tests are run.

use xtask::facades;

use crate::common::files;

/// The scripts that `.ci/clients` runs, and how the row of each begins.
fn clients(script: &str) -> Vec<(&str, &str)> {
    let quoted = script.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix('"'));
    quoted.filter_map(|client| client.split_once('|')).collect()
}

#[test]
fn the_page_has_a_row_for_each_program_and_no_other() {
    let files = files();
    let page = &files["docs/WORKS_WITH.md"];
    let (_, table) = page.split_once("|---|\n").expect("a table");
    let programs = clients(&files[".ci/clients"]);
    assert!(programs.len() > 10, "{programs:?}");
    let programs = programs.into_iter().map(|(_, program)| program.to_owned());
    let known: Vec<_> = facades::rows().into_iter().chain(programs).collect();
    for program in &known {
        let begins = format!("| {program} |");
        let rows = table.lines().filter(|line| line.starts_with(&begins)).count();
        assert_eq!(rows, 1, "rows of {program}: the command that runs it writes one");
    }
    assert_eq!(table.lines().count(), known.len(), "a row of a program that no command runs");
    for row in table.lines() {
        assert_eq!(row.matches(" | ").count(), 6, "not seven cells: {row}");
    }
}

#[test]
fn what_is_measured_is_what_is_tested() {
    let manifest = &files()["facades/client-bench/Cargo.toml"];
    let rows = facades::rows();
    let (mut names, mut same) = (0, 0);
    for (name, version) in rows.iter().filter_map(|row| row.split_once(" | ")) {
        let asked = manifest.lines().filter(|line| line.starts_with(&format!("{name} = ")));
        for line in asked {
            names += 1;
            same += usize::from(line.contains(&format!("\"={version}\"")));
        }
    }
    assert!(names == 5 && same == 5, "versions of client-bench are not those of the table");
}

/// Each script of a client is run.
#[test]
fn each_script_of_a_client_is_in_the_list() {
    let parts = ["common", "dns"];
    let files = files();
    let scripts = files.keys().filter_map(|name| {
        name.strip_prefix("compat/clients/")?.strip_suffix(".sh").filter(|n| !parts.contains(n))
    });
    let clients = clients(&files[".ci/clients"]);
    let listed = |script: &str| clients.iter().any(|(n, _)| n.split('-').next() == Some(script));
    let unlisted: Vec<_> = scripts.filter(|script| !listed(script)).collect();
    assert!(unlisted.is_empty(), "no command runs {unlisted:?}");
}
