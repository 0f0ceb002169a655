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
        let is_rust = Path::new(file).extension().is_none();
        let file = if is_rust { format!("{file}.rs") } else { file.to_owned() };
        let of = |folder| root.join(package).join(folder).join(&file);
        // A module of the library and a file of tests may have one name.
        let sources = [of("tests"), of("src")].map(|source| fs::read_to_string(source).ok());
        assert!(sources.iter().any(Option::is_some), "{name}: there is no such file");
        let text = sources.into_iter().flatten().collect::<String>();
        let there = if is_rust {
            text.contains(&format!("fn {test}("))
        } else {
            // In C or C++: defined, and run by the program's list or its `main`.
            let is_run = [format!("CASE({test})"), format!("\t{test}();")];
            text.contains(&format!("void {test}(void)")) && text.contains(&is_run[0])
                || text.contains(&format!("void {test}()")) && text.contains(&is_run[1])
        };
        assert!(there, "{name} does not exist");
        checked += 1;
    }
    assert!(checked > 40, "only {checked} names found");
}
