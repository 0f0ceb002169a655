//! C++26's `<rcu>` and `<hazard_pointer>`: their programs in `cpp/`, compiled as C++17 (what of it
//! needs no later one), C++20 and C++23 against our headers, run with our libraries; and that a
//! program is refused where the standard says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use xtask::limited;
use xtask::needs;
use xtask::needs::Need::Gxx;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cpp")
}

fn compile(standard: &str, source: &Path, into: &Path) -> Output {
    let built = xtask::compat::built();
    Command::new("g++")
        .args(["-O2", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"])
        .arg(format!("-std={standard}"))
        .arg(format!("-I{}", built.join("include").display()))
        .arg(source)
        .arg(format!("-L{}", built.join("lib").display()))
        .args(["-lurcu-memb", "-lquiescence", "-o"])
        .arg(into)
        .output()
        .expect("g++ runs")
}

fn run(program: &Path) -> Output {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", xtask::compat::built().join("lib"));
    limited::output(&mut command, Duration::from_secs(120)).expect("it runs")
}

fn compiled_and_run(name: &str, standards: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    for &standard in standards {
        let program = directory.path().join(standard);
        let output = compile(standard, &folder().join(name), &program);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{standard}: {said}");
        let output = run(&program);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{standard}: {:?}: {said}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
    }
}

#[test]
fn rcu() {
    if !needs::met(&[Gxx]) {
        return;
    }
    compiled_and_run("rcu.cpp", &["c++20", "c++23"]);
}

#[test]
fn hazard_pointers() {
    if !needs::met(&[Gxx]) {
        return;
    }
    compiled_and_run("hazard_pointer.cpp", &["c++17", "c++20", "c++23"]);
}

/// The inlined reader executes no locked instruction on its fast path, and calls nothing.
#[test]
fn a_section_is_a_few_plain_instructions() {
    if !needs::met(&[Gxx]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("section.cpp");
    std::fs::write(
        &source,
        "#include <rcu>\nextern \"C\" int section(int *const &p)\n{\n\tauto &domain = std::rcu_default_domain();\n\
         \tdomain.lock();\n\tint found = *p;\n\tdomain.unlock();\n\treturn found;\n}\nint main() {}\n",
    )
    .unwrap();
    let program = directory.path().join("section");
    let output = compile("c++20", &source, &program);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "--disassemble=section"])
        .arg(&program)
        .output()
        .expect("objdump runs");
    let text = String::from_utf8_lossy(&output.stdout);
    // What is likely comes first, up to the first return; what is not stands behind it.
    let fast: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.ends_with("<section>:"))
        .skip(1)
        .take_while(|line| !line.contains("\tret"))
        .collect();
    assert!((10..40).contains(&fast.len()), "{text}");
    if cfg!(target_arch = "x86_64") {
        let costly = |line: &&&str| {
            ["lock ", "mfence", "xchg", "call"].iter().any(|instruction| line.contains(instruction))
        };
        assert_eq!(fast.iter().filter(costly).count(), 0, "{text}");
    }
}

#[test]
fn what_the_standard_forbids_is_refused() {
    if !needs::met(&[Gxx]) {
        return;
    }
    let cases = [
        ("std::rcu_domain mine;", "private"),
        ("auto copy = std::rcu_default_domain();", "deleted"),
        ("struct No {}; std::rcu_retire(new int, No());", "d(p) is to be well-formed"),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (number, (statement, complaint)) in cases.iter().enumerate() {
        let source = directory.path().join(format!("{number}.cpp"));
        std::fs::write(&source, format!("#include <rcu>\nint main() {{ {statement} }}\n")).unwrap();
        let output = compile("c++20", &source, &directory.path().join("refused"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(complaint), "{statement}: {said}");
    }
}
