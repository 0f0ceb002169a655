# The ways into the kernel, out of it, and from thread to thread.

# Of OpenSBI, for the first hart (a0: its number) and, by hart_start, for the others: the hart's own
# stack of 64 KiB.
.section .text.boot
.globl _start
_start:
    li s0, 1
    j 1f
.globl hart_entry
hart_entry:
    li s0, 0
1:  la sp, HART_STACKS
    addi t0, a0, 1
    slli t0, t0, 16
    add sp, sp, t0
    mv a1, s0
    call hart_main

# A trap, out of the kernel or out of user mode, where sscratch has the kernel's stack pointer; in
# the kernel it is 0. All registers go into a frame on the kernel's stack, so that another thread
# may run before this one goes on. Interrupts are off until sret.
.equ FRAME, 288
.section .text
.balign 4
.globl trap_entry
trap_entry:
    csrrw sp, sscratch, sp
    bnez sp, 1f
    csrr sp, sscratch
1:  addi sp, sp, -FRAME
    sd x1, 8(sp)
    sd x3, 24(sp)
    sd x4, 32(sp)
    sd x5, 40(sp)
    sd x6, 48(sp)
    sd x7, 56(sp)
    sd x8, 64(sp)
    sd x9, 72(sp)
    sd x10, 80(sp)
    sd x11, 88(sp)
    sd x12, 96(sp)
    sd x13, 104(sp)
    sd x14, 112(sp)
    sd x15, 120(sp)
    sd x16, 128(sp)
    sd x17, 136(sp)
    sd x18, 144(sp)
    sd x19, 152(sp)
    sd x20, 160(sp)
    sd x21, 168(sp)
    sd x22, 176(sp)
    sd x23, 184(sp)
    sd x24, 192(sp)
    sd x25, 200(sp)
    sd x26, 208(sp)
    sd x27, 216(sp)
    sd x28, 224(sp)
    sd x29, 232(sp)
    sd x30, 240(sp)
    sd x31, 248(sp)
    csrrw t0, sscratch, zero
    sd t0, 16(sp)
    csrr t0, sepc
    sd t0, 256(sp)
    csrr t1, sstatus
    sd t1, 264(sp)
    andi t1, t1, 0x100
    bnez t1, 2f
    ld tp, 272(sp)
2:  mv a0, sp
    csrr a1, scause
    call on_trap
    ld t1, 264(sp)
    csrw sstatus, t1
    ld t0, 256(sp)
    csrw sepc, t0
    andi t1, t1, 0x100
    bnez t1, 3f
    # Back to user mode: the next trap finds the stack, and the hart.
    sd tp, 272(sp)
    addi t0, sp, FRAME
    csrw sscratch, t0
3:  ld x1, 8(sp)
    ld x3, 24(sp)
    # To the kernel: the thread may only go on where it was, so its tp is what it was.
    ld x4, 32(sp)
    ld x5, 40(sp)
    ld x6, 48(sp)
    ld x7, 56(sp)
    ld x8, 64(sp)
    ld x9, 72(sp)
    ld x10, 80(sp)
    ld x11, 88(sp)
    ld x12, 96(sp)
    ld x13, 104(sp)
    ld x14, 112(sp)
    ld x15, 120(sp)
    ld x16, 128(sp)
    ld x17, 136(sp)
    ld x18, 144(sp)
    ld x19, 152(sp)
    ld x20, 160(sp)
    ld x21, 168(sp)
    ld x22, 176(sp)
    ld x23, 184(sp)
    ld x24, 192(sp)
    ld x25, 200(sp)
    ld x26, 208(sp)
    ld x27, 216(sp)
    ld x28, 224(sp)
    ld x29, 232(sp)
    ld x30, 240(sp)
    ld x31, 248(sp)
    ld sp, 16(sp)
    sret

# What a function keeps for its caller, on the stack: `restore` takes it back.
.macro save
    addi sp, sp, -112
    sd ra, 0(sp)
    sd s0, 8(sp)
    sd s1, 16(sp)
    sd s2, 24(sp)
    sd s3, 32(sp)
    sd s4, 40(sp)
    sd s5, 48(sp)
    sd s6, 56(sp)
    sd s7, 64(sp)
    sd s8, 72(sp)
    sd s9, 80(sp)
    sd s10, 88(sp)
    sd s11, 96(sp)
.endm

# switch_stacks(a0: where this thread's stack pointer goes, a1: the next one's), interrupts off.
.globl switch_stacks
switch_stacks:
    save
    sd sp, 0(a0)
    mv sp, a1
    j restore

# enter_user(a0: rounds), interrupts off: a program that counts them down, then calls the kernel,
# whose answer is that enter_user returns (src/trap.rs). It has no stack, and no address space.
.globl enter_user
enter_user:
    save
    # 272 - FRAME: where trap_entry finds the hart.
    sd tp, -16(sp)
    csrw sscratch, sp
    la t0, 1f
    csrw sepc, t0
    # SPP off: user mode. SPIE on: interrupts on there.
    li t0, 0x100
    csrc sstatus, t0
    li t0, 0x20
    csrs sstatus, t0
    sret
1:  addi a0, a0, -1
    bnez a0, 1b
    ecall
.globl restore
restore:
    ld ra, 0(sp)
    ld s0, 8(sp)
    ld s1, 16(sp)
    ld s2, 24(sp)
    ld s3, 32(sp)
    ld s4, 40(sp)
    ld s5, 48(sp)
    ld s6, 56(sp)
    ld s7, 64(sp)
    ld s8, 72(sp)
    ld s9, 80(sp)
    ld s10, 88(sp)
    ld s11, 96(sp)
    addi sp, sp, 112
    ret

# Where a new thread begins: s0 is its function.
.globl thread_entry
thread_entry:
    csrsi sstatus, 2
    jalr s0
    call thread_end
