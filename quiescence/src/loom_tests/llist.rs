//! A callback queue's llist.

use super::*;

/// A callback queue's llist: two threads push what they have written, one of them twice; the thread
/// that takes it sleeps where there is nothing. All of it is taken, what was written is seen, and
/// each one's come in order.
#[test]
fn an_llist_wakes_whoever_sleeps() {
    bounded(2, || {
        let shared = Arc::new((Llist::new(), [const { () }; 3].map(|()| UnsafeCell::new(0_u32))));
        let links: [Box<Link>; 3] = std::array::from_fn(|_| Box::new(Link::new()));
        let links = links.map(|link| Box::into_raw(link).expose_provenance());
        let push = |numbers: &'static [usize]| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for &number in numbers {
                    // SAFETY: a write; that the thread that takes comes after it is what is tested.
                    shared.1[number].with_mut(|cell| unsafe { *cell = 7 });
                    let link = std::ptr::with_exposed_provenance_mut(links[number]);
                    // SAFETY: a box that is freed at the end; each is pushed once.
                    if unsafe { shared.0.push(link, false) } == Found::Asleep {
                        shared.0.ring();
                    }
                }
            })
        };
        assert!(shared.0.take().is_null());
        let pushers = [push(&[0, 1]), push(&[2])];
        let (mut chain, mut taken) = (Chain::EMPTY, Vec::new());
        while taken.len() < 3 {
            let heard = shared.0.heard();
            // SAFETY: taken just now.
            unsafe { chain.append(shared.0.take()) }.unwrap();
            if chain.is_empty() {
                shared.0.sleep(heard, None);
            }
            while let Some((link, _)) = chain.pop() {
                let number = links.iter().position(|known| *known == link.addr()).unwrap();
                // SAFETY: a read; that it comes after the write is what is tested.
                shared.1[number].with(|cell| assert_eq!(unsafe { *cell }, 7));
                taken.push(number);
            }
        }
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        taken.retain(|number| *number != 2);
        assert_eq!(taken, [0, 1]);
        for link in links {
            // SAFETY: from a box, and in no chain any more.
            drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Link>(link)) });
        }
    });
}
