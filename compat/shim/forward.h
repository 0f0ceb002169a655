/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For assembly: `forward name` defines the function NAME as a jump to quiescence_NAME of libquiescence.so.0, through the
 * global offset table. All registers and the stack are the caller's, so it is right for any signature.
 * `forward_as name, target` jumps to quiescence_TARGET: two names of one function. With a number
 * besides, 2 or 3, that argument is a null pointer: of what the caller does not ask for.
 */
.macro forward name
	forward_as \name, \name
.endm

#if defined(__x86_64__)
.macro forward_as name, target, null=0
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	.if	\null == 2
	xorl	%esi, %esi
	.elseif	\null == 3
	xorl	%edx, %edx
	.endif
	jmp	*quiescence_\target@GOTPCREL(%rip)
	.cfi_endproc
	.size	\name, . - \name
.endm
#elif defined(__aarch64__)
.macro forward_as name, target, null=0
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34	/* bti c */
	.if	\null == 2
	mov	x1, xzr
	.elseif	\null == 3
	mov	x2, xzr
	.endif
	adrp	x16, :got:quiescence_\target
	ldr	x16, [x16, :got_lo12:quiescence_\target]
	br	x16
	.cfi_endproc
	.size	\name, . - \name
.endm
#else
# error "no jump for this architecture yet"
#endif
