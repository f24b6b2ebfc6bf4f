#include "shim/interpose/work.h"

#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"

/* Returns whether the address is on a card. Memory that the driver does not know is memory of the host. */
static bool is_on_card(ll_cu_deviceptr address)
{
	LL_REENTRY_SCOPE();
	unsigned int type = 0;
	ll_cu_result status = ll_real()->cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
	return status == LL_CUDA_SUCCESS && type != LL_CU_MEMORYTYPE_HOST;
}

static bool is_side_on_card(enum ll_cu_memory_type type, ll_cu_deviceptr address)
{
	return type == LL_CU_MEMORYTYPE_DEVICE || type == LL_CU_MEMORYTYPE_ARRAY ||
	       (type == LL_CU_MEMORYTYPE_UNIFIED && is_on_card(address));
}

struct ll_copy_sides ll_copy_sides_of_addresses(ll_cu_deviceptr to, ll_cu_deviceptr from)
{
	return (struct ll_copy_sides){is_on_card(to), is_on_card(from)};
}

struct ll_copy_sides ll_copy_sides_of(enum ll_cu_memory_type to_type, ll_cu_deviceptr to,
				      enum ll_cu_memory_type from_type, ll_cu_deviceptr from)
{
	return (struct ll_copy_sides){is_side_on_card(to_type, to), is_side_on_card(from_type, from)};
}

static bool is_operand_on_card(const struct ll_cu_copy_operand *operand)
{
	return operand->type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY || is_on_card(operand->at.pointer.address);
}

struct ll_copy_sides ll_copy_sides_of_lines(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count)
{
	if (!to || !from || !count)
		return (struct ll_copy_sides){false, false};
	for (size_t i = 0; i < count; i++) {
		if (is_on_card(to[i]) && is_on_card(from[i]))
			return (struct ll_copy_sides){true, true};
	}
	return ll_copy_sides_of_addresses(to[0], from[0]);
}

struct ll_copy_sides ll_copy_sides_of_blocks(const struct ll_cu_copy3d_op *ops, size_t count)
{
	if (!ops || !count)
		return (struct ll_copy_sides){false, false};
	for (size_t i = 0; i < count; i++) {
		if (is_operand_on_card(&ops[i].to) && is_operand_on_card(&ops[i].from))
			return (struct ll_copy_sides){true, true};
	}
	return (struct ll_copy_sides){is_operand_on_card(&ops[0].to), is_operand_on_card(&ops[0].from)};
}

uint64_t ll_copy_bytes_of_lines(const size_t *bytes, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; bytes && i < count; i++)
		sum += bytes[i];
	return sum;
}
