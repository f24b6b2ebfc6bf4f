/*
 * dlsym_entry.S - the exported dlsym and dlvsym (dlsym.c). They save the arguments and call the route function of
 * dlsym.c, which gets the return address as its fourth argument. They jump to libc's function and do not call it, so
 * that libc sees the return address of the program.
 */
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.text

#if defined(__x86_64__) && defined(__LP64__)

/* The stack is 16-byte aligned for the call: the return address and three words. */
.macro entry name, route
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	_CET_ENDBR
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	24(%rsp), %rcx
	call	\route
	testq	%rax, %rax
	jz	1f
	.cfi_remember_state
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
1:
	.cfi_restore_state
	movq	%rdx, %rax
	addq	$24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size	\name, . - \name
.endm

#elif defined(__aarch64__)

/* hint 34 is `bti c`, and nothing on processors without it. A jump through x16 may enter a `bti c`. */
.macro entry name, route
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	#34
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	mov	x3, x30
	bl	\route
	mov	x16, x0
	mov	x17, x1
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	cbz	x16, 1f
	br	x16
1:
	mov	x0, x17
	ret
	.cfi_endproc
	.size	\name, . - \name
.endm

#else
#error "no dlsym for this processor: see src/shim/meson.build"
#endif

	.hidden	ll_dlsym_choose_route
	entry	dlsym, ll_dlsym_choose_route
	.globl	ll_dlsym_entry
	.hidden	ll_dlsym_entry
	.set	ll_dlsym_entry, dlsym
#ifdef LL_HAS_DLVSYM
	.hidden	ll_dlvsym_route
	entry	dlvsym, ll_dlvsym_route
	.globl	ll_dlvsym_entry
	.hidden	ll_dlvsym_entry
	.set	ll_dlvsym_entry, dlvsym
#endif

	.section .note.GNU-stack, "", %progbits
