// cargo add slotmap parking_lot
use parking_lot::Mutex;
use slotmap::{DefaultKey, SlotMap};

fn main() {
    let sessions: Mutex<SlotMap<DefaultKey, &str>> = Mutex::default();
    let id = sessions.lock().insert("alice");
    assert_eq!(sessions.lock().get(id), Some(&"alice"));
    // An id of something that is gone finds nothing, also when its slot is used again.
    sessions.lock().remove(id);
    assert_eq!(sessions.lock().get(id), None);
}
