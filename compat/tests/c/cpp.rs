//! C++26's `<rcu>` and `<hazard_pointer>`: their programs in `cpp/`, compiled as C++17 (what of it
//! needs no later one), C++20 and C++23 against our headers, run with our libraries as the first of
//! these that they compile as; and that a program is refused where the standard says so.

use std::path::Path;
use std::process::Command;

use xtask::needs;

use crate::program::{Whose, compile, compiler, run, succeeds};

/// What a program is compiled with, beside the standard.
const OPTIONS: [&str; 4] = ["-Wpedantic", "-Wshadow", "-lurcu-memb", "-lquiescence"];

/// Compiles a program for the first of these standards, and runs it. Of the later ones it is asked
/// whether they accept it: the headers have no code that depends on them.
fn compiled_and_run(name: &str, standards: &[&str]) {
    let (first, later) = standards.split_first().expect("a standard");
    for standard in later {
        let only = [*standard, "-fsyntax-only"];
        let mut compiler = compiler(name.as_ref(), Whose::Ours, &[&only, &OPTIONS[..2]].concat());
        assert_eq!(succeeds(&mut compiler), "", "{standard}");
    }
    let program = compile(name, Whose::Ours, &[&[*first], &OPTIONS[..]].concat());
    assert_eq!(run(&program, Whose::Ours, &[]), "ok\n", "{first}");
}

#[test]
fn rcu() {
    needs::or_return!(Gxx);
    compiled_and_run("cpp/rcu.cpp", &["-std=c++20", "-std=c++23"]);
    compiled_and_run("cpp/saferecl_rcu.cpp", &["-std=c++20", "-std=c++23"]);
}

#[test]
fn hazard_pointers() {
    needs::or_return!(Gxx);
    let standards = ["-std=c++17", "-std=c++20", "-std=c++23"];
    compiled_and_run("cpp/hazard_pointer.cpp", &standards);
    compiled_and_run("cpp/saferecl_hp.cpp", &standards);
}

/// `cpp/paragraphs.txt` names a test for each paragraph, and each test of the two programs.
#[test]
fn each_paragraph_of_the_standard_has_its_test() {
    let read = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let of_refusals = read("tests/c/cpp.rs");
    const SAFERECL: [&str; 2] = ["saferecl_hp.cpp", "saferecl_rcu.cpp"];
    let [hp, rcu] = SAFERECL;
    let sources = ["hazard_pointer.cpp", "rcu.cpp", hp, rcu, "saferecl_base.h"];
    let sources = sources.map(|name| (name, read(&format!("tests/cpp/{name}"))));
    let list = read("tests/cpp/paragraphs.txt");
    let rows: Vec<&str> = list.lines().filter(|line| line.contains(" | ")).collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    let mut listed = std::collections::BTreeSet::new();
    for row in rows {
        let cell = row.split('|').nth(2).unwrap_or_else(|| panic!("no third column: {row}"));
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || cell.contains('–'), "no test: {row}");
        for name in names {
            let is_there = |text: &str| text.contains(&format!("{name}()"));
            let is_test = is_there(&of_refusals) || sources.iter().any(|(_, text)| is_there(text));
            assert!(is_test, "no test {name}: {row}");
            listed.insert(name);
        }
    }
    for (name, text) in sources.iter().filter(|(name, _)| SAFERECL.contains(name)) {
        let (_, called) = text.split_once("int main()").expect("a program");
        let tests = called.lines().filter_map(|line| line.trim().strip_suffix("();"));
        for test in tests {
            assert!(listed.contains(test), "{name}: no paragraph has {test}");
        }
    }
}

/// The inlined reader executes no locked instruction on its fast path, and calls nothing.
#[test]
fn a_section_is_a_few_plain_instructions() {
    needs::or_return!(Gxx);
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("section.cpp");
    std::fs::write(
        &source,
        "#include <rcu>\nextern \"C\" int section(int *const &p)\n{\n\tauto &domain = std::rcu_default_domain();\n\
         \tdomain.lock();\n\tint found = *p;\n\tdomain.unlock();\n\treturn found;\n}\nint main() {}\n",
    )
    .unwrap();
    let source = source.to_str().expect("UTF-8");
    let program = compile(source, Whose::Ours, &[&["-O2", "-std=c++20"], &OPTIONS[..]].concat());
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn", "--disassemble=section"]).arg(&program);
    let text = succeeds(&mut objdump);
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

/// What an object is not to be, of the base `BASE`; `retire` or another use of it comes after. And
/// what its deleter is not.
const NOT_PROTECTABLE: &[&str] = &[
    "struct A : private BASE<A> {}; BASE<A> &b = (BASE<A> &)*new A;",
    "struct A : virtual BASE<A> {}; BASE<A> &b = *new A;",
    "struct A {}; struct B : BASE<A> {}; BASE<A> &b = *new B;",
    "struct D { void operator()(void *) const {} }; struct A : BASE<A>, BASE<A, D> {}; \
     BASE<A> &b = *new A;",
    "struct A : BASE<A> {}; struct B : A, BASE<B> {}; BASE<B> &b = *new B;",
];

#[test]
fn what_the_standard_forbids_is_refused() {
    needs::or_return!(Gxx);
    let mut cases: Vec<(&str, String, &str)> = [
        ("rcu", "std::rcu_domain mine;", "private"),
        ("rcu", "auto copy = std::rcu_default_domain();", "deleted"),
        ("rcu", "struct No {}; std::rcu_retire(new int, No());", "d(p) must be well-formed"),
        (
            "rcu",
            "struct No {}; struct A : std::rcu_obj_base<A, No> {}; (new A)->retire();",
            "d(p) must be well-formed",
        ),
        (
            "rcu",
            "struct D { D() = default; D(D &&) = delete; void operator()(int *) {} }; \
             std::rcu_retire(new int, D());",
            "the deleter must be move-constructible",
        ),
        (
            "hazard_pointer",
            "struct No {}; struct A : std::hazard_pointer_obj_base<A, No> {}; (new A)->retire();",
            "d(p) must be well-formed",
        ),
        ("hazard_pointer", "std::hazard_pointer a; auto b = a;", "deleted"),
    ]
    .map(|(header, statement, complaint)| (header, statement.to_owned(), complaint))
    .into();
    for (header, base) in
        [("rcu", "std::rcu_obj_base"), ("hazard_pointer", "std::hazard_pointer_obj_base")]
    {
        let retired = |text: &&str| format!("{} b.retire();", text.replace("BASE", base));
        let statements = NOT_PROTECTABLE.iter().map(retired);
        cases.extend(statements.map(|statement| (header, statement, "once and publicly")));
    }
    for used in ["p.protect(s)", "A *a = s; p.try_protect(a, s)", "p.reset_protection(s.load())"] {
        for object in ["struct A : No {};", "struct A : private O {};", "struct A {};"] {
            let statement = format!(
                "struct No : std::hazard_pointer_obj_base<No> {{}}; struct A; \
                 using O = std::hazard_pointer_obj_base<A>; {object} \
                 std::atomic<A *> s{{new A}}; auto p = std::make_hazard_pointer(); {used};"
            );
            cases.push(("hazard_pointer", statement, "once and publicly"));
        }
    }
    // All of a header are one source, a line and a function each.
    for header in ["rcu", "hazard_pointer"] {
        let cases: Vec<_> = cases.iter().filter(|(of, ..)| *of == header).collect();
        let functions = cases
            .iter()
            .enumerate()
            .map(|(number, (_, statement, _))| format!("void case_{number}() {{ {statement} }}\n"));
        let text = format!("#include <{header}>\n{}", functions.collect::<String>());
        let source = crate::scratch::scratch("refused").join("cases.cpp");
        std::fs::write(&source, text).unwrap();
        let options = ["-std=c++20", "-fsyntax-only", "-fno-diagnostics-show-caret"];
        let output = compiler(&source, Whose::Ours, &options).output().expect("g++ runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let errors = errors(&said);
        for (number, (_, statement, complaint)) in cases.iter().enumerate() {
            let place = format!("cases.cpp:{}:", number + 2);
            let is_its = |error: &String| error.contains(&place) && error.contains(complaint);
            assert!(errors.iter().any(is_its), "{statement} is not refused: {said}");
        }
    }
}

/// The errors of a compiler, each with the lines before it that say where it comes from.
fn errors(said: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut error = String::new();
    for line in said.lines().filter(|line| !line.contains(": note: ")) {
        error.push_str(line);
        error.push('\n');
        if line.contains(": error: ") {
            errors.push(std::mem::take(&mut error));
        }
    }
    errors
}
