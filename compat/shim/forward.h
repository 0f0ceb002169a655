/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For assembly: `forward name` defines the function NAME as a jump to quiescence_NAME of libquiescence.so.0, through the
 * global offset table. All registers and the stack are the caller's, so it is right for any signature.
 */
#if defined(__x86_64__)
.macro forward name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	jmp	*quiescence_\name@GOTPCREL(%rip)
	.cfi_endproc
	.size	\name, . - \name
.endm
#elif defined(__aarch64__)
.macro forward name
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34	/* bti c */
	adrp	x16, :got:quiescence_\name
	ldr	x16, [x16, :got_lo12:quiescence_\name]
	br	x16
	.cfi_endproc
	.size	\name, . - \name
.endm
#else
# error "no jump for this architecture yet"
#endif
