// cargo add slotmap
use std::sync::Mutex;
use slotmap::{DefaultKey, SlotMap};

fn main() {
    let sessions: Mutex<SlotMap<DefaultKey, &str>> = Mutex::default();
    let id = sessions.lock().unwrap().insert("alice");
    assert_eq!(sessions.lock().unwrap().get(id), Some(&"alice"));
    // An id of something that is gone finds nothing, also when its slot is used again.
    sessions.lock().unwrap().remove(id);
    assert_eq!(sessions.lock().unwrap().get(id), None);
}
