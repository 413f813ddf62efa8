#include <fastweights/models/implementation/chat_template.hpp>
