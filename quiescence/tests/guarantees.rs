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
        let is_rust = Path::new(path).extension().is_none();
        // Where the folder of the package ends is not said; and a module of the library and a file
        // of tests may have one name.
        let sources = path.match_indices('/').flat_map(|(end, _)| {
            let (package, file) = (&path[..end], &path[end + 1..]);
            let file = if is_rust { format!("{file}.rs") } else { file.to_owned() };
            ["tests", "src"].map(|folder| root.join(package).join(folder).join(&file))
        });
        let text: Vec<_> = sources.filter_map(|source| fs::read_to_string(source).ok()).collect();
        assert!(!text.is_empty(), "{name}: there is no such file");
        let text = text.concat();
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
