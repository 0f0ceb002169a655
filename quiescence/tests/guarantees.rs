//! Every test that `docs/GUARANTEES.md` names exists.

use std::fs;
use std::path::Path;

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let document = fs::read_to_string(root.join("docs/GUARANTEES.md")).unwrap();
    let names: Vec<&str> =
        document.split('`').skip(1).step_by(2).filter(|name| name.contains('/')).collect();
    let mut checked = 0;
    for name in names {
        let Some((path, test)) = name.split_once("::") else { continue };
        let (package, file) = path.split_once('/').unwrap();
        let of = |folder| root.join(package).join(folder).join(file).with_extension("rs");
        let source = if of("tests").exists() { of("tests") } else { of("src") };
        let text = fs::read_to_string(&source)
            .unwrap_or_else(|error| panic!("{name}: {}: {error}", source.display()));
        assert!(text.contains(&format!("fn {test}(")), "{name} does not exist");
        checked += 1;
    }
    assert!(checked > 40, "only {checked} names found");
}
