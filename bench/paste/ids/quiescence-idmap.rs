// cargo add quiescence
use quiescence::collections::IdMap;

fn main() {
    let sessions = IdMap::new();
    let id = sessions.insert("alice");
    // A reader: references live as long as the section.
    assert_eq!(sessions.read().get(id), Some(&"alice"));
    // An id of something that is gone finds nothing, also when its slot is used again.
    assert!(sessions.remove(id));
    assert_eq!(sessions.read().get(id), None);
}
