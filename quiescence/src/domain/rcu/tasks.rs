//! Updates by tasks: while one waits at the limit, or for the old value, its thread can run other
//! tasks.

use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr;

use super::{Rcu, RcuOption, Unlinked, into_raw};
use crate::domain::tag::DomainTag;
use crate::domain::tasks::{grace_period, room_for_object};
use crate::os::on_drop::OnDrop;
use crate::reclaim::free::{Address, Boxed, Pending};
use crate::reclaim::unlink::{self, Reservation};

/// # For tasks
/// Futures that need no runtime, and never block the thread that polls them.
impl<T: Send + Sync + 'static, K: DomainTag> Rcu<T, K> {
    /// Async [`store`](Self::store): at the domain's limit it waits for room without blocking the
    /// thread, then stores. **Await it after the task's own sections**: where the task keeps a
    /// guard or reference of the domain meanwhile, it waits for ever once the limit is reached.
    ///
    /// It waits for at most one grace period. If others have taken all the room by then, it stores
    /// and exceeds the limit, which
    /// [`Statistics::limit_overruns`](crate::report::Statistics::limit_overruns) counts. So each
    /// waiting task exceeds it by at most one value per grace period, and not at all while no grace
    /// period ends.
    ///
    /// **If the future is dropped** before it is ready, nothing has been stored, and `value` is
    /// dropped with it.
    ///
    /// Waiting tasks are woken in the order of arrival. A task that has just arrived may overtake
    /// them.
    ///
    /// ```
    /// # use quiescence::{Rcu, tag::Sleepable};
    /// async fn publish(config: &Rcu<String, Sleepable>) {
    ///     config.store_async(String::from("new")).await;
    /// }
    /// ```
    pub fn store_async(&self, value: T) -> impl Future<Output = ()> + Send {
        self.inner.store_async(Some(value))
    }

    /// Async [`update`](Self::update): at the domain's limit it waits for room as
    /// [`store_async`](Self::store_async) does, then calls `f`.
    ///
    /// `f` runs inside a section, in the poll that makes the update. If the future is dropped
    /// before it is ready, nothing has changed.
    ///
    /// ```
    /// # use quiescence::{Rcu, tag::Sleepable};
    /// async fn count(requests: &Rcu<u64, Sleepable>) {
    ///     requests.update_async(|count| count + 1).await;
    /// }
    /// ```
    #[track_caller]
    pub fn update_async<F>(&self, mut f: F) -> impl Future<Output = ()> + Send
    where
        F: FnMut(&T) -> T + Send,
    {
        let location = Location::caller();
        async move {
            let attempt = || self.update_if_room(location, &mut f);
            if room_for_object(self.domain().clone(), attempt).await.is_err() {
                self.update_alone(self.domain().tag().enter(location), &mut f).retire_over();
            }
        }
    }

    /// Updates, if there is room for the value that is replaced.
    fn update_if_room(&self, location: &'static Location<'static>, f: impl FnMut(&T) -> T) -> bool {
        let tag = self.domain().tag();
        let Some(room) = self.inner.reserve_any() else { return false };
        let room = Cell::new(Some(room));
        // Where `f` panics, nothing is replaced.
        let _unused = OnDrop(|| {
            if let Some(room) = room.take() {
                room.put_back(tag.core());
            }
        });
        let old = self.update_alone(tag.enter(location), f);
        let room = room.take().expect("until it is used");
        old.retire_by(|tag, object, bytes| room.retire(tag, Some(object), bytes));
        true
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> RcuOption<T, K> {
    /// Async [`store`](Self::store). See [`Rcu::store_async`].
    pub async fn store_async(&self, value: Option<T>) {
        let mut value = Some(value);
        let stored = room_for_object(self.domain.clone(), || {
            value = value.take().and_then(|value| self.store_if_room(value).err());
            value.is_none()
        });
        if stored.await.is_err()
            && let Some(value) = value
            && let Some(old) = self.swap(value)
        {
            old.retire_over();
        }
    }

    /// Stores, if there is room for the value that is replaced.
    #[track_caller]
    pub(super) fn store_if_room(&self, value: Option<T>) -> Result<(), Option<T>> {
        let Some(room) = self.reserve_any() else { return Err(value) };
        // SAFETY: what was in the place, and is out of reach now.
        unsafe { self.retire_old(self.exchange(into_raw(value)), Some(room)) };
        Ok(())
    }

    /// Room for the value that is in the place, if there is any; nothing is waited for.
    #[track_caller]
    fn reserve_any(&self) -> Option<Reservation<'_>> {
        let charge = self.scale.constant::<T>().unwrap_or_else(|| self.charge_now());
        unlink::reserve_any(self.domain.tag(), charge)
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> Unlinked<T, K> {
    /// Async [`into_inner`](Self::into_inner): does not block the thread.
    ///
    /// If the future is dropped before it is ready, it does not wait. The value is dropped if its
    /// grace period has ended and the thread is in no section; otherwise it is retired, over the
    /// domain's limit if need be.
    ///
    /// ```
    /// # use quiescence::{Rcu, tag::Sleepable};
    /// async fn replace(name: &Rcu<String, Sleepable>) -> String {
    ///     let old = name.swap(String::from("new"));
    ///     old.into_inner_async().await // after its last reader
    /// }
    /// ```
    pub fn into_inner_async(self) -> impl Future<Output = T> + Send + use<T, K> {
        let kept = Kept(Some(self));
        async move {
            if let Some(old) = kept.0.as_ref().filter(|old| !old.is_unread()) {
                grace_period(old.domain.clone(), old.unread_after).await;
            }
            *kept.taken().into_box_unread()
        }
    }

    /// Retires it without waiting, over the limit if need be; or drops it, where nothing speaks
    /// against that.
    fn retire_over(self) {
        let unread_after = self.unread_after;
        self.retire_by(|tag, object, bytes| {
            // SAFETY: see `unread_after`.
            let timed = unsafe { object.since(unread_after) };
            unlink::retire_box_over(tag, timed, bytes);
        });
    }

    fn retire_by(self, retire: impl FnOnce(&K, Pending<'_, Address<Boxed<T>>>, usize)) {
        let bytes = self.scale.charge::<T>(self.domain.core(), &self);
        let mut this = ManuallyDrop::new(self);
        let address = Address::<Boxed<T>>(this.pointer.as_ptr());
        // SAFETY: from a box and unreachable, see `new`; used once.
        let object = unsafe { Pending::new(this.domain.core(), address) };
        retire(this.domain.tag(), object, bytes);
        // SAFETY: `this` is not used or dropped as a whole any more; the domain is dropped once.
        unsafe { ptr::drop_in_place(&raw mut this.domain) };
    }
}

/// A value that is retired without waiting, if its task ends before it has it back.
struct Kept<T: Send + Sync + 'static, K: DomainTag>(Option<Unlinked<T, K>>);

impl<T: Send + Sync + 'static, K: DomainTag> Kept<T, K> {
    fn taken(mut self) -> Unlinked<T, K> {
        self.0.take().expect("taken once")
    }
}

impl<T: Send + Sync + 'static, K: DomainTag> Drop for Kept<T, K> {
    fn drop(&mut self) {
        if let Some(old) = self.0.take() {
            old.retire_over();
        }
    }
}
