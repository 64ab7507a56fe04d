/* PyTorch's checkpoints (torch.save and torch.jit.save since 1.6): a zip archive whose data.pkl
 * says which tensors there are, and whose other records hold their numbers.
 *
 *     ARCHIVE/data.pkl     {"state_dict": {"visual.proj": tensor(storage "0", offset, shape,
 * strides)}} ARCHIVE/data/0       the storage, as it lies in memory
 *
 * No pickle code is run (core/pickle.h): globals are those of tensors, storages, OrderedDict and,
 * in TorchScript archives, modules, which are read as dicts of their attributes. Nested dicts give
 * dotted names. Where the top dict has "model", "state_dict" or "model_state_dict" and no tensors
 * of its own, only that is read; a "module." before every name goes. Tensors may share storage; one
 * that does not lie in one piece is copied. */
#ifndef VLP_CORE_TORCH_FILE_H
#define VLP_CORE_TORCH_FILE_H

#include "core/safetensors.h"

vlp_status vlp_torch_open(vlp_safetensors **out, const char *path);
/* The same for bytes in memory, which the caller keeps alive; `where` stands for the path. */
vlp_status vlp_torch_open_memory(vlp_safetensors **out, const void *data, size_t len,
                                 const char *where);

#endif
