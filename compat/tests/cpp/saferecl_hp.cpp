// SPDX-License-Identifier: MIT OR Apache-2.0
//
// [saferecl.hp], paragraph by paragraph: docs/C.md lists which function is which. What is
// ill-formed is in ../cpp.rs.

#include "scan.h"

template <class T, class D = std::default_delete<T>>
using Base = std::hazard_pointer_obj_base<T, D>;

struct Node : Base<Node, Stateless> {
	int value = 7;
};

// It holds when all that was retired and is not protected is reclaimed.
template <class F> static void after_reclamation(F holds)
{
	scan();
	until(holds);
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

#include "saferecl_base.h"

static_assert(!std::is_polymorphic_v<Node>);

static void the_deleter_is_moved_along_and_called_once()
{
	struct ByMoved : Base<ByMoved, Moved> {};
	Moved deleter;
	deleter.is_it = true;
	(new ByMoved)->retire(std::move(deleter));
	scan();
	until([] { return Moved::calls == 1; });
	scan();
	CHECK(Moved::calls == 1 && Moved::copies == 0 && !deleter.is_it);
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
