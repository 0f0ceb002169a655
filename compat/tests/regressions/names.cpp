// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Ordinary user code, whose names are its own: members, deleters, and what stands in the classes
// around them. Every class here has a base of ours, and names something that the headers once
// named.

#include <hazard_pointer>
#include <rcu>

#include <cstdio>
#include <thread>

static std::atomic<int> ended;

// The deleter is named inside the class whose base carries it.
struct Node;
struct Deleter {
	void operator()(Node *object) const;
};
struct Node : std::rcu_obj_base<Node, Deleter> {
	void remove() { retire(Deleter{}); }
};
void Deleter::operator()(Node *object) const
{
	delete object;
	ended++;
}

// Types outside of the class that members of it name.
struct node {
	int value = 1;
};
struct link {
	node to;
};
using function = int (*)(const link &);
static int take(const link &which) { return which.to.value; }
static int set(function which) { return which(link{}); }
static const int kept = 1, value = 1, object = 1, deleter = 1;

template <class Base> struct User : Base {
	node first;
	link second;
	int sum() const { return set(take) + kept + value + object + deleter + first.value + second.to.value; }
	void remove() { this->retire(); }
	~User() { ended += sum() == 7; }
};
struct Read : User<std::rcu_obj_base<Read>> {};
struct Protected : User<std::hazard_pointer_obj_base<Protected>> {};

// The same where the base is no template's parameter, and its names are found first.
struct Plain : std::rcu_obj_base<Plain> {
	link second;
	node first;
	int sum() const { return set(take) + kept + value + object + deleter; }
	~Plain() { ended += sum() == 5; }
};
struct Hazard : std::hazard_pointer_obj_base<Hazard> {
	link second;
	node first;
	int sum() const { return set(take) + kept + value + object + deleter; }
	~Hazard() { ended += sum() == 5; }
};

// Deleters with members of every kind: in both bases of one class, which has the same members.
struct Full {
	int get = 1, run = 1, next = 1, reclaim = 1;
	template <class T> void operator()(T *which) const { delete which; }
};
struct Both : std::rcu_obj_base<Both, Full>, std::hazard_pointer_obj_base<Both, Deleter> {
	int get = 1, run = 1, next = 1, reclaim = 1;
	~Both() { ended += get + run + next + reclaim == 4; }
	void remove() { std::rcu_obj_base<Both, Full>::retire(Full{}); }
};

int main()
{
	(new Node)->remove();
	(new Read)->remove();
	(new Protected)->remove();
	(new Plain)->retire();
	(new Hazard)->retire();
	(new Both)->remove();
	while (ended != 6)
		std::this_thread::yield();
	std::puts("ok");
}
