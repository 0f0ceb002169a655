// SPDX-License-Identifier: MIT OR Apache-2.0
//
// [saferecl.hp], paragraph by paragraph: docs/C.md lists which function is which. What is
// ill-formed is in ../cpp.rs.

#include <hazard_pointer>

#include "saferecl.h"

template <class T, class D = std::default_delete<T>>
using Base = std::hazard_pointer_obj_base<T, D>;

struct Node : Base<Node, Stateless> {
	int value = 7;
};

// Returns when a scan has begun after the call, and is over: when the second of two objects is
// reclaimed, the scan that has reclaimed the first one is over.
static void scan()
{
	struct Flagged : Base<Flagged> {
		std::atomic<bool> *gone;
		explicit Flagged(std::atomic<bool> *flag) : gone(flag) {}
		~Flagged() { *gone = true; }
	};
	for (int each = 0; each < 2; each++) {
		std::atomic<bool> gone{false};
		(new Flagged(&gone))->retire();
		until([&] { return gone.load(); });
	}
}

// Retires it. Whether it is reclaimed by a scan.
template <class T> static bool is_reclaimed(T *object)
{
	int before = deleted;
	object->retire();
	scan();
	return deleted != before;
}

// ---- [saferecl.hp.general], [saferecl.hp.syn]

static void a_hazard_pointer_is_made_unassociated()
{
	auto pointer = std::make_hazard_pointer();
	CHECK(!pointer.empty());
	CHECK(is_reclaimed(new Node));
}

static void an_association_ends_the_one_before()
{
	auto pointer = std::make_hazard_pointer();
	auto *one = new Node, *other = new Node;
	pointer.reset_protection(one);
	pointer.reset_protection(one); // a new epoch, of the same object
	CHECK(!is_reclaimed(one));
	int before = deleted;
	pointer.reset_protection(other);
	scan();
	CHECK(deleted == before + 1);
	pointer.reset_protection();
	CHECK(is_reclaimed(other));
}

static void a_retired_object_is_reclaimed_by_its_deleter()
{
	struct Before {
		virtual ~Before() = default;
		long first = 1;
	};
	// Not at the beginning of the object.
	struct Second : Before, Base<Second, Stateless> {};
	auto *object = new Second;
	CHECK(is_reclaimed(object));
	CHECK(given == static_cast<void *>(object));
}

static void what_is_protected_when_it_is_retired_stays()
{
	std::atomic<Node *> source{new Node};
	auto pointer = std::make_hazard_pointer();
	Node *object = pointer.protect(source);
	source = nullptr;
	std::thread([object] { CHECK(!is_reclaimed(object)); }).join();
	CHECK(object->value == 7);
	int before = deleted;
	pointer.reset_protection();
	scan();
	CHECK(deleted == before + 1);
}

static_assert(__cpp_lib_hazard_pointer == 202306L);
static_assert(std::is_same_v<decltype(std::make_hazard_pointer()), std::hazard_pointer>);
static_assert(std::is_same_v<Base<Node>, std::hazard_pointer_obj_base<Node>>);
using Reference = std::hazard_pointer &;
static_assert(noexcept(swap(std::declval<Reference>(), std::declval<Reference>())));
static_assert(std::is_nothrow_swappable_v<std::hazard_pointer>);

// ---- [saferecl.hp.base]

// Protected, and defaulted: of the base alone nothing can be made, and objects copy and move as
// their members do.
static_assert(!std::is_default_constructible_v<Base<Node>> && !std::is_destructible_v<Base<Node>>);
static_assert(!std::is_copy_constructible_v<Base<Node>>);
static_assert(!std::is_move_constructible_v<Base<Node>>);
static_assert(!std::is_copy_assignable_v<Base<Node>> && !std::is_move_assignable_v<Base<Node>>);
static_assert(std::is_nothrow_default_constructible_v<Node>);
static_assert(std::is_trivially_destructible_v<Node>);
static_assert(std::is_nothrow_copy_constructible_v<Node>);
static_assert(std::is_nothrow_move_constructible_v<Node>);
static_assert(std::is_nothrow_copy_assignable_v<Node>);
static_assert(std::is_nothrow_move_assignable_v<Node>);
static_assert(std::is_void_v<decltype(std::declval<Node &>().retire())>);
static_assert(noexcept(std::declval<Node &>().retire()));
static_assert(!std::is_polymorphic_v<Node>);

// A copy is an object of its own, which was not retired.
static void objects_are_copied_and_moved()
{
	Node one;
	one.value = 9;
	auto *copy = new Node(one), *moved = new Node(std::move(one));
	Node assigned;
	assigned = *copy;
	assigned = std::move(*moved);
	CHECK(copy->value == 9 && moved->value == 9 && assigned.value == 9);
	CHECK(is_reclaimed(copy) && is_reclaimed(moved));
}

static void any_function_object_is_a_deleter()
{
	struct ByPointer : Base<ByPointer, void (*)(ByPointer *)> {};
	struct ByFinal : Base<ByFinal, Final> {};
	struct ByState : Base<ByState, Stateful> {};
	struct ByDefault : Base<ByDefault> {
		~ByDefault() { deleted++; }
	};
	int before = deleted;
	(new ByPointer)->retire(&deletes<ByPointer>);
	(new ByFinal)->retire();
	std::atomic<int> called{0};
	(new ByState)->retire(Stateful{&called});
	(new ByDefault)->retire();
	scan();
	until([&] { return deleted == before + 4; });
	CHECK(called == 1);
}

static void a_deleter_need_only_be_made_and_assigned()
{
	struct ByLeast : Base<ByLeast, Least> {};
	static_assert(!std::is_move_constructible_v<Least>);
	int before = deleted;
	(new ByLeast)->retire(Least(7));
	(new ByLeast)->retire();
	scan();
	until([&] { return deleted == before + 2; });
}

struct Later;
struct EndLater {
	void operator()(Later *later) const;
};
using OfLater = Base<Later, EndLater>; // T is not complete here
struct Later : OfLater {
	int text = 3;
};
void EndLater::operator()(Later *later) const
{
	CHECK(later->text == 3);
	deletes(later);
}

static void the_object_may_be_incomplete_where_its_base_is_named()
{
	CHECK(is_reclaimed(new Later));
}

static void the_deleter_is_moved_along_and_called_once()
{
	static std::atomic<int> copies{0}, calls{0};
	struct Moved {
		bool is_it = false;
		Moved() = default;
		Moved(const Moved &other) : is_it(other.is_it) { copies++; }
		Moved(Moved &&other) noexcept : is_it(std::exchange(other.is_it, false)) {}
		Moved &operator=(const Moved &other)
		{
			copies++;
			is_it = other.is_it;
			return *this;
		}
		Moved &operator=(Moved &&other) noexcept
		{
			is_it = std::exchange(other.is_it, false);
			return *this;
		}
		void operator()(void *object)
		{
			CHECK(is_it);
			calls++;
			::operator delete(object); // of no destructor
		}
	};
	struct ByMoved : Base<ByMoved, Moved> {};
	Moved deleter;
	deleter.is_it = true;
	(new ByMoved)->retire(std::move(deleter));
	scan();
	until([] { return calls == 1; });
	scan();
	CHECK(calls == 1 && copies == 0 && !deleter.is_it);
}

// ---- [saferecl.hp.holder]

static_assert(std::is_nothrow_default_constructible_v<std::hazard_pointer>);
static_assert(std::is_nothrow_move_constructible_v<std::hazard_pointer>);
static_assert(std::is_nothrow_move_assignable_v<std::hazard_pointer>);
static_assert(std::is_nothrow_destructible_v<std::hazard_pointer>);
static_assert(!std::is_copy_constructible_v<std::hazard_pointer>);
static_assert(!std::is_copy_assignable_v<std::hazard_pointer>);

static void one_is_empty_or_owns_a_hazard_pointer()
{
	std::hazard_pointer empty;
	const auto owner = std::make_hazard_pointer();
	CHECK(empty.empty() && !owner.empty());
	static_assert(noexcept(owner.empty()) && std::is_same_v<decltype(owner.empty()), bool>);
}

// A protected object, and what protects it.
struct Held {
	std::hazard_pointer pointer = std::make_hazard_pointer();
	Node *object = new Node;
	Held()
	{
		pointer.reset_protection(object);
		CHECK(!is_reclaimed(object));
	}
};

// How many were reclaimed since the last call, after a scan.
static int gone()
{
	static int last = 0;
	scan();
	int now = deleted;
	return now - std::exchange(last, now);
}

static void a_move_takes_ownership_along()
{
	Held held;
	gone();
	std::hazard_pointer moved(std::move(held.pointer));
	CHECK(held.pointer.empty() && !moved.empty() && gone() == 0);
	std::hazard_pointer of_empty(std::move(held.pointer));
	CHECK(of_empty.empty() && held.pointer.empty());
	moved.reset_protection();
	CHECK(gone() == 1);
}

static void the_end_of_an_owner_ends_its_epoch()
{
	{
		Held held;
		gone();
		CHECK(gone() == 0);
	}
	CHECK(gone() == 1);
	{ std::hazard_pointer empty; }
}

static void an_assignment_ends_what_was_owned_before()
{
	Held one, other;
	gone();
	CHECK(&(one.pointer = std::move(other.pointer)) == &one.pointer);
	CHECK(other.pointer.empty() && !one.pointer.empty());
	CHECK(gone() == 1); // what `one` protected
	CHECK(gone() == 0); // what `other` did stays
	auto &self = one.pointer;
	one.pointer = std::move(self);
	CHECK(!one.pointer.empty() && gone() == 0);
	one.pointer = std::move(other.pointer); // of an empty one
	CHECK(one.pointer.empty() && gone() == 1);
	auto &empty = one.pointer;
	one.pointer = std::move(empty);
	CHECK(one.pointer.empty());
}

static void protect_returns_what_the_source_holds()
{
	auto *object = new Node;
	std::atomic<Node *> source{object};
	const std::atomic<Node *> &as_const = source;
	auto pointer = std::make_hazard_pointer();
	static_assert(noexcept(pointer.protect(as_const)));
	static_assert(std::is_same_v<decltype(pointer.protect(as_const)), Node *>);
	CHECK(pointer.protect(as_const) == object && source == object);
	CHECK(!is_reclaimed(object));
	gone();
	source = nullptr;
	CHECK(pointer.protect(source) == nullptr);
	CHECK(gone() == 1);
}

// It is what it has protected that is returned, while others change the source.
static void protect_goes_on_until_the_source_holds_still()
{
	std::atomic<Node *> source{new Node};
	std::atomic<bool> stop{false};
	std::thread writer([&] {
		while (!stop)
			source.exchange(new Node)->retire();
	});
	auto pointer = std::make_hazard_pointer();
	for (int each = 0; each < 20000; each++)
		CHECK(pointer.protect(source)->value == 7);
	stop = true;
	writer.join();
	pointer.reset_protection();
	CHECK(is_reclaimed(source.load()));
}

static void try_protect_says_whether_the_source_still_holds_it()
{
	auto *one = new Node, *other = new Node;
	std::atomic<Node *> source{other};
	auto pointer = std::make_hazard_pointer();
	Node *found = one;
	static_assert(noexcept(pointer.try_protect(found, source)));
	static_assert(std::is_same_v<decltype(pointer.try_protect(found, source)), bool>);
	pointer.reset_protection(one);
	CHECK(!pointer.try_protect(found, source) && found == other);
	CHECK(is_reclaimed(one)); // nothing is protected
	CHECK(pointer.try_protect(found, source) && found == other);
	CHECK(!is_reclaimed(other));
	gone();
	source = nullptr;
	CHECK(!pointer.try_protect(found, source) && found == nullptr);
	CHECK(gone() == 1);
	CHECK(pointer.try_protect(found, source) && found == nullptr);
}

static void reset_protection_associates()
{
	auto pointer = std::make_hazard_pointer();
	auto *object = new Node;
	const Node *as_const = object;
	static_assert(noexcept(pointer.reset_protection(as_const)));
	static_assert(noexcept(pointer.reset_protection(nullptr)));
	static_assert(noexcept(pointer.reset_protection()));
	pointer.reset_protection(as_const);
	CHECK(!is_reclaimed(object));
	gone();
	pointer.reset_protection(static_cast<Node *>(nullptr)); // as without an argument
	CHECK(gone() == 1);
}

static void reset_protection_of_nullptr_ends_it()
{
	for (bool with_argument : {false, true}) {
		Held held;
		gone();
		if (with_argument)
			held.pointer.reset_protection(nullptr);
		else
			held.pointer.reset_protection();
		CHECK(!held.pointer.empty() && gone() == 1);
	}
}

static void swap_leaves_associations_as_they_are()
{
	Held held;
	std::hazard_pointer empty;
	gone();
	static_assert(noexcept(empty.swap(held.pointer)));
	empty.swap(held.pointer);
	CHECK(held.pointer.empty() && !empty.empty() && gone() == 0);
	swap(held.pointer, empty);
	CHECK(empty.empty() && !held.pointer.empty() && gone() == 0);
	std::swap(held.pointer, empty);
	CHECK(held.pointer.empty() && gone() == 0);
	empty.swap(empty);
	CHECK(!empty.empty() && gone() == 0);
	empty.reset_protection();
	CHECK(gone() == 1);
}

static void each_that_is_made_is_another_one()
{
	std::vector<std::hazard_pointer> all;
	std::vector<Node *> objects;
	for (int each = 0; each < 200; each++) {
		all.push_back(std::make_hazard_pointer());
		objects.push_back(new Node);
		all.back().reset_protection(objects.back());
	}
	int before = deleted;
	for (Node *object : objects)
		object->retire();
	scan();
	CHECK(deleted == before);
	all.clear();
	scan();
	until([&] { return deleted == before + 200; });
}

int main()
{
	a_hazard_pointer_is_made_unassociated();
	an_association_ends_the_one_before();
	a_retired_object_is_reclaimed_by_its_deleter();
	what_is_protected_when_it_is_retired_stays();
	objects_are_copied_and_moved();
	any_function_object_is_a_deleter();
	a_deleter_need_only_be_made_and_assigned();
	the_object_may_be_incomplete_where_its_base_is_named();
	the_deleter_is_moved_along_and_called_once();
	one_is_empty_or_owns_a_hazard_pointer();
	a_move_takes_ownership_along();
	the_end_of_an_owner_ends_its_epoch();
	an_assignment_ends_what_was_owned_before();
	protect_returns_what_the_source_holds();
	protect_goes_on_until_the_source_holds_still();
	try_protect_says_whether_the_source_still_holds_it();
	reset_protection_associates();
	reset_protection_of_nullptr_ends_it();
	swap_leaves_associations_as_they_are();
	each_that_is_made_is_another_one();
	std::puts("ok");
}
