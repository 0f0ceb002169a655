// SPDX-License-Identifier: MIT OR Apache-2.0
//
// [saferecl.hp.base] and [saferecl.rcu.base], which say the same of their bases: included where
// Base, a Node of it, is_reclaimed() and after_reclamation() are those of one or the other.

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
	after_reclamation([&] { return deleted == before + 4; });
	CHECK(called == 1);
}

static void a_deleter_need_only_be_made_and_assigned()
{
	struct ByLeast : Base<ByLeast, Least> {};
	static_assert(!std::is_move_constructible_v<Least>);
	int before = deleted;
	(new ByLeast)->retire(Least(7));
	(new ByLeast)->retire();
	after_reclamation([&] { return deleted == before + 2; });
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
